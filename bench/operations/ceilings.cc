#include "bench/operations/ceilings.h"

#include "base/errors/status.h"
#include "operations/linear.h"

namespace stagecoach {
namespace {

Rates RatesOf(const TimedCall& timed, double work) {
  return {work / timed.median_seconds, work / timed.least_seconds, timed.runs};
}

}  // namespace

absl::StatusOr<Rates> ProductRates(Backend& backend, Precision precision, int64_t side,
                                   double seconds) {
  backend.SetPrecision(precision);
  NetworkCall call{.call = {.operation = "linear", .attributes = ToAttributes(LinearAttributes{})},
                   .types = {}};
  call.types.inputs = {ActivationType({side}), WeightType(Element::kActivation, {side, side})};
  call.types.outputs = {ActivationType({side})};
  ASSIGN_OR_RETURN(const TimedCall timed,
                   CallTimer(backend, seconds).Time(call, side, ComputeDType(precision)));
  const auto n = static_cast<double>(side);
  return RatesOf(timed, 2 * n * n * n);
}

absl::StatusOr<Rates> CopyRates(Backend& backend, int64_t bytes, double seconds) {
  CallTimer timer(backend, seconds);
  const Shape shape{bytes / 4};
  ASSIGN_OR_RETURN(const Tensor source, timer.tensors().Numbers(DType::kF32, shape));
  ASSIGN_OR_RETURN(const Tensor target, timer.tensors().Numbers(DType::kF32, shape));
  ASSIGN_OR_RETURN(const TimedCall timed,
                   timer.Time([&](int64_t) { backend.Convert(source, target); }));
  return RatesOf(timed, 2.0 * static_cast<double>(source.bytes()));
}

}  // namespace stagecoach
