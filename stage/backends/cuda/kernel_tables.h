// Tables of tensors for one launch over all of them (kernels.h), as the host makes them.
// Ownership: a KeptTable owns its memory on the device.  Threads: executor thread only.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNEL_TABLES_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNEL_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "base/errors/check.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/launch_config.h"
#include "stage/tensor/tensor.h"

namespace stagecoach::cuda {

// A table on the device. It is uploaded when it differs from the one that is there
// (KernelBackend::Upload). The parameters of a stage stay where they are from step to step.
struct KeptTable {
  std::vector<std::byte> host;
  Tensor device;
};

// A table as it grows on the host. Entries have no padding, as they are compared as bytes. No more
// than 2^31 chunks of any kind fit a card's memory.
template <typename Entry>
struct GrowingTable {
  std::vector<Entry> entries;
  int64_t chunks = 0;
  bool wide = true;  // all arrays lie on multiples of 16 bytes

  // Invalid tensors count as none.
  void Append(Entry entry, int64_t its_chunks, std::initializer_list<const Tensor*> tensors) {
    entry.first_chunk = chunks;
    entries.push_back(entry);
    chunks += its_chunks;
    for (const Tensor* tensor : tensors) {
      wide = wide && (!tensor->valid() || reinterpret_cast<uintptr_t>(tensor->raw()) % 16 == 0);
    }
  }
  int64_t count() const { return static_cast<int64_t>(entries.size()); }
  std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span<const Entry>(entries));
  }
};

inline int64_t UpdateChunks(int64_t elements) {
  return (elements + kUpdateChunk - 1) / kUpdateChunk;
}

// Adds two tensors of F32 and one size.
inline void AppendPair(const char* what, const Tensor& first, const Tensor& second,
                       GrowingTable<PairEntry>* table) {
  const int64_t n = first.elements();
  CHECK_EQ(n, second.elements()) << what;
  CheckType(what, DType::kF32, {&first, &second});
  table->Append({.first = first.data<float>(), .second = second.data<float>(), .n = n},
                UpdateChunks(n), {&first, &second});
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNEL_TABLES_H_
