// HostValues: the values of a tensor, where the host can read them: in place if the device has the
// host's memory, else a copy.
// Ownership: the tensor outlives the values.
// Threads:   executor thread only.
// Errors:    those of Backend::Synchronize.
#ifndef STAGECOACH_STAGE_DECODING_HOST_VALUES_H_
#define STAGECOACH_STAGE_DECODING_HOST_VALUES_H_

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "stage/backends/backend.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

class HostValues {
 public:
  // Waits for the device's queued work.
  absl::Status Read(const Tensor& tensor, Backend& backend) {
    bytes_ = tensor.span();
    if (CopiesForLinks(backend)) {
      const auto size = static_cast<size_t>(tensor.bytes());
      copy_ = std::make_unique_for_overwrite<std::byte[]>(size);
      backend.CopyToHost(tensor, {copy_.get(), size});
      bytes_ = {copy_.get(), size};
    }
    return backend.Synchronize();
  }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::span<const float> floats() const {
    return {reinterpret_cast<const float*>(bytes_.data()), bytes_.size() / sizeof(float)};
  }

 private:
  std::unique_ptr<std::byte[]> copy_;
  std::span<const std::byte> bytes_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DECODING_HOST_VALUES_H_
