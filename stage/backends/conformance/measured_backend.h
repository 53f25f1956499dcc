// MeasuredBackend: another back end whose kernels are measured. After each call it compares the
// workspace that the allocator gave at the peak with the description of the call
// (Backend::Describe). Before each call it drops what earlier calls left.
// Ownership: owns the other back end. Threads: as Backend.
// Units:     bytes, as the allocator accounts them.
#ifndef STAGECOACH_STAGE_BACKENDS_CONFORMANCE_MEASURED_BACKEND_H_
#define STAGECOACH_STAGE_BACKENDS_CONFORMANCE_MEASURED_BACKEND_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stage/backends/backend.h"

namespace stagecoach::conformance {

class MeasuredBackend final : public Backend {
 public:
  // May change what the other back end says.
  using Change = std::function<void(const Call& call, CallDescription* description)>;
  explicit MeasuredBackend(std::unique_ptr<Backend> inner, Change change = nullptr)
      : inner_(std::move(inner)), change_(std::move(change)) {}

  // The first call that took more than its description says, with the numbers; empty: none did.
  const std::string& exceeded() const { return exceeded_; }
  int measured() const { return measured_; }  // calls

  std::string fingerprint() const override { return inner_->fingerprint(); }
  absl::StatusOr<CallDescription> Describe(const Call& call, const CallTypes& types,
                                           int64_t samples, DType activation) override;
  std::vector<std::string> WithoutKernels() const override { return inner_->WithoutKernels(); }
  HostProfile Host() const override { return inner_->Host(); }
  Allocator& allocator() override { return inner_->allocator(); }
  absl::StatusOr<Kernel> Prepare(const Call& call, const CallTypes& types,
                                 DType activation) override;
  absl::StatusOr<KernelOfAll> PrepareAll(std::span<const Call> calls,
                                         std::span<const CallTypes> types,
                                         DType activation) override;
  void Fill(const Tensor& tensor, float value) override { inner_->Fill(tensor, value); }
  void Swap(const Tensor& a, const Tensor& b) override { inner_->Swap(a, b); }
  void SquaredNorm(const Tensor& tensor, const Tensor& result) override {
    inner_->SquaredNorm(tensor, result);
  }
  void Convert(const Tensor& source, const Tensor& target) override {
    inner_->Convert(source, target);
  }
  void CopyFromHost(std::span<const std::byte> source, const Tensor& target) override {
    inner_->CopyFromHost(source, target);
  }
  void CopyToHost(const Tensor& source, std::span<std::byte> target) override {
    inner_->CopyToHost(source, target);
  }
  absl::Status Synchronize() override { return inner_->Synchronize(); }
  void EndCell() override { inner_->EndCell(); }

 private:
  struct Described {
    Call call;
    CallTypes types;
    DType activation;
  };
  // All of one operation.
  void Measure(const std::vector<Described>& calls, int64_t samples,
               const std::function<void()>& run);

  const std::unique_ptr<Backend> inner_;
  const Change change_;
  std::string exceeded_;
  int measured_ = 0;
};

}  // namespace stagecoach::conformance

#endif  // STAGECOACH_STAGE_BACKENDS_CONFORMANCE_MEASURED_BACKEND_H_
