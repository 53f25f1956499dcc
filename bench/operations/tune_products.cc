#include "bench/operations/tune_products.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/device_name.h"
#include "base/errors/status.h"
#include "stage/backends/cuda/make_cuda_backend.h"

namespace stagecoach {

absl::Status CheckTunable(const std::string& device) {
  if (IsCudaDevice(device)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--matmul-table-out: only cards have a choice of matrix algorithms, and --device=", device,
      " is none; give --device=cuda:0 on a machine with a card"));
}

bool IsLinear(const NetworkCall& call) {
  const std::string& name = call.call.operation;
  return name == "linear" || absl::StartsWith(name, "linear_");
}

absl::StatusOr<ProductTuner> ProductTuner::Make(Backend& backend, double seconds) {
  cuda::MatmulTrials* const trials = MatmulTrialsOf(backend);
  if (trials == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", backend.fingerprint(), "\" has no choice of matrix algorithms"));
  }
  return ProductTuner(backend, *trials, seconds);
}

ProductTuner::ProductTuner(Backend& backend, cuda::MatmulTrials& trials, double seconds)
    : trials_(&trials),
      timer_(std::make_unique<CallTimer>(backend, seconds)),
      table_(trials.Header()) {}

absl::StatusOr<std::vector<cuda::TunedProduct>> ProductTuner::Tune(const NetworkCall& call,
                                                                   int64_t samples,
                                                                   DType activation) {
  ASSIGN_OR_RETURN(const auto run, timer_->Runs(call, samples, activation));
  const cuda::TimeCall time = [&]() -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(const TimedCall timed, timer_->Time(run));
    return timed.median_seconds;
  };
  return cuda::TuneMatmul(*trials_, time, table_);
}

}  // namespace stagecoach
