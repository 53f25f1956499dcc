// For tests: small networks, tensors with known contents, and the bytes of a stash.
#ifndef STAGECOACH_STAGE_LAYERS_LAYER_TESTING_H_
#define STAGECOACH_STAGE_LAYERS_LAYER_TESTING_H_

#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/numbers/random.h"
#include "network/network_kinds.h"
#include "network/network_spec.h"
#include "stage/backends/backend.h"
#include "stage/layers/layer_runner.h"

namespace stagecoach {

inline Network ExpandOrDie(const NetworkSpec& spec) {
  absl::StatusOr<Network> network = ExpandNetwork(spec);
  CHECK_OK(network.status());
  return *std::move(network);
}

template <typename T>
Tensor TensorOf(Backend& backend, const std::vector<T>& values, DType dtype, Shape shape) {
  absl::StatusOr<Tensor> tensor =
      MakeTensor(backend.allocator(), MemoryKind::kActivations, dtype, std::move(shape));
  CHECK_OK(tensor.status());
  if (!values.empty()) backend.CopyFromHost(std::as_bytes(std::span(values)), *tensor);
  CHECK_OK(backend.Synchronize());
  return *std::move(tensor);
}

template <typename T>
std::vector<T> ValuesOf(Backend& backend, const Tensor& tensor) {
  std::vector<T> values(tensor.elements());
  backend.CopyToHost(tensor, std::as_writable_bytes(std::span(values)));
  return values;
}

// Standard normal numbers times scale; `stream` tells one call's numbers from another's.
inline std::vector<float> NormalValues(int64_t count, uint32_t stream, float scale = 1.0f) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = scale * RandomNormal({.seed = 4711, .operation = stream}, i);
  }
  return values;
}

// Token ids in [0, vocabulary).
inline std::vector<int32_t> TokenValues(int64_t count, uint32_t stream, int64_t vocabulary) {
  std::vector<int32_t> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = static_cast<int32_t>(RandomBits({.seed = 815, .operation = stream}, i) %
                                     static_cast<uint64_t>(vocabulary));
  }
  return values;
}

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Bytes of the distinct buffers a stash holds.
inline int64_t StashBytes(const Stash& stash) {
  std::map<const Buffer*, int64_t> bytes;
  for (const Tensor& tensor : stash.tensors) bytes[tensor.buffer().get()] = tensor.bytes();
  int64_t sum = 0;
  for (const auto& [buffer, size] : bytes) sum += size;
  return sum;
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LAYERS_LAYER_TESTING_H_
