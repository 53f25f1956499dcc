#include "tests/oracle/recorder.h"

#include <utility>

#include "base/errors/check.h"
#include "checkpoint/files/file_system.h"

namespace stagecoach {
namespace {

template <typename T>
std::vector<std::byte> BytesOf(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void Recorder::Insert(const std::string& name, Array array) {
  CHECK(arrays_.emplace(name, std::move(array)).second) << name << " was recorded before";
}

void Recorder::Add(const std::string& name, Backend& backend, const Tensor& tensor) {
  Array array{tensor.dtype(), tensor.shape(), std::vector<std::byte>(tensor.bytes())};
  backend.CopyToHost(tensor, array.bytes);
  Insert(name, std::move(array));
}

void Recorder::Add(const std::string& name, const std::vector<int32_t>& values, Shape shape) {
  CHECK_EQ(shape.elements(), static_cast<int64_t>(values.size())) << name;
  Insert(name, {DType::kI32, std::move(shape), BytesOf(values)});
}

void Recorder::Add(const std::string& name, const std::vector<double>& values) {
  Insert(name, {DType::kF64, Shape({static_cast<int64_t>(values.size())}), BytesOf(values)});
}

void Recorder::Add(const std::string& name, DType dtype, Shape shape,
                   std::vector<std::byte> bytes) {
  CHECK_EQ(shape.elements() * DTypeSize(dtype), static_cast<int64_t>(bytes.size())) << name;
  Insert(name, {dtype, std::move(shape), std::move(bytes)});
}

absl::Status Recorder::Write(const std::string& path) const {
  std::vector<TensorSource> sources;
  for (const auto& [name, array] : arrays_) {
    sources.push_back({name, array.dtype, array.shape,
                       [&bytes = array.bytes]() -> absl::StatusOr<std::span<const std::byte>> {
                         return std::span(bytes);
                       }});
  }
  return WriteSafetensors(*PosixFileSystem(), path, sources, metadata_).status();
}

}  // namespace stagecoach
