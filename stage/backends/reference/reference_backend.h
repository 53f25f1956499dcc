// ReferenceBackend: every operation as plain loops over host memory; long sums are in double. Tests
// compare the other back ends with it. It is slow, single-threaded and obvious. Its operations read
// and write float32; MakeReferenceBackend's take bfloat16 as well (bfloat16.cc).
#ifndef STAGECOACH_STAGE_BACKENDS_REFERENCE_REFERENCE_BACKEND_H_
#define STAGECOACH_STAGE_BACKENDS_REFERENCE_REFERENCE_BACKEND_H_

#include <memory>
#include <string>
#include <vector>

#include "stage/backends/backend.h"

namespace stagecoach {

class ReferenceBackend : public Backend {
 public:
  explicit ReferenceBackend(const BackendOptions& options)
      : allocator_(MakeHostAllocator(options.memory_limit_bytes)) {}

  std::string fingerprint() const override;
  Allocator& allocator() override { return *allocator_; }
  // Its kernels take nothing of the allocator.
  absl::StatusOr<CallDescription> Describe(const Call& call, const CallTypes& types,
                                           int64_t samples, DType activation) override;
  std::vector<std::string> WithoutKernels() const override;
  absl::StatusOr<Kernel> Prepare(const Call& call, const CallTypes& types,
                                 DType activation) override;

  void Fill(const Tensor& tensor, float value) override;
  void Swap(const Tensor& a, const Tensor& b) override;
  void SquaredNorm(const Tensor& tensor, const Tensor& result) override;
  void Convert(const Tensor& source, const Tensor& target) override;
  void CopyFromHost(std::span<const std::byte> source, const Tensor& target) override;
  void CopyToHost(const Tensor& source, std::span<std::byte> target) override;
  absl::Status Synchronize() override { return absl::OkStatus(); }

 private:
  const std::unique_ptr<Allocator> allocator_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_REFERENCE_REFERENCE_BACKEND_H_
