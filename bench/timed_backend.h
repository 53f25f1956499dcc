// TimedBackend: a back end whose calls are counted and timed by operation and types; what is no
// call of a network is not. For tables of where a step's time goes.
// Ownership: owns the inner back end. Threads: as Backend; seconds of the calling thread.
#ifndef STAGECOACH_BENCH_TIMED_BACKEND_H_
#define STAGECOACH_BENCH_TIMED_BACKEND_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "stage/backends/backend.h"

namespace stagecoach {

class TimedBackend final : public Backend {
 public:
  struct Calls {
    int64_t count = 0;
    double seconds = 0;
  };
  TimedBackend(std::unique_ptr<Backend> inner, double (*now)())
      : inner_(std::move(inner)), now_(now) {}

  // "max_pool_gradient 32x32x16" -> its calls; the shape is the first input's.
  const std::map<std::string, Calls>& calls() const { return calls_; }
  void Forget() {
    for (auto& [name, calls] : calls_) calls = {};
  }

  std::string fingerprint() const override { return inner_->fingerprint(); }
  absl::StatusOr<CallDescription> Describe(const Call& call, const CallTypes& types,
                                           int64_t samples, DType activation) override {
    return inner_->Describe(call, types, samples, activation);
  }
  std::vector<std::string> WithoutKernels() const override { return inner_->WithoutKernels(); }
  Allocator& allocator() override { return inner_->allocator(); }
  absl::StatusOr<Kernel> Prepare(const Call& call, const CallTypes& types,
                                 DType activation) override {
    ASSIGN_OR_RETURN(Kernel kernel, inner_->Prepare(call, types, activation));
    std::string name = call.operation;
    if (!types.inputs.empty()) absl::StrAppend(&name, " ", types.inputs[0].shape.ToString());
    const std::string attributes = FormatAttributes(call.attributes);
    if (!attributes.empty()) absl::StrAppend(&name, " ", attributes);
    Calls* const calls = &calls_[name];
    return [this, kernel, calls](const KernelContext& context, const KernelArguments& arguments) {
      const double start = now_();
      kernel(context, arguments);
      calls->seconds += now_() - start;
      ++calls->count;
    };
  }
  absl::StatusOr<KernelOfAll> PrepareAll(std::span<const Call> calls,
                                         std::span<const CallTypes> types,
                                         DType activation) override {
    return inner_->PrepareAll(calls, types, activation);
  }
  void SetPrecision(Precision precision) override { inner_->SetPrecision(precision); }
  void UseSpareMemory(const SpareMemory& spare) override { inner_->UseSpareMemory(spare); }
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
  const std::unique_ptr<Backend> inner_;
  double (*const now_)();
  std::map<std::string, Calls> calls_;  // their addresses stay
};

}  // namespace stagecoach

#endif  // STAGECOACH_BENCH_TIMED_BACKEND_H_
