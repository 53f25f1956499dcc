#include "plan/job_spec.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "network/freeze.h"
#include "network/network_kinds.h"

namespace stagecoach {

absl::StatusOr<Network> ExpandJob(const JobSpec& spec) {
  ASSIGN_OR_RETURN(Network network, ExpandModel(spec.model, spec.precision));
  return Freeze(std::move(network), spec.training.freeze, "training.freeze");
}

double LearningRateAt(const LearningRateSpec& spec, int64_t step, int64_t steps) {
  CHECK(step >= 0) << "step " << step;
  if (step < spec.warmup_steps) {
    return spec.peak * static_cast<double>(step + 1) / static_cast<double>(spec.warmup_steps);
  }
  const double length = static_cast<double>(std::max<int64_t>(steps - spec.warmup_steps, 1));
  const double t = std::min(1.0, static_cast<double>(step - spec.warmup_steps) / length);
  switch (spec.kind) {
    case LearningRateSpec::Kind::kConstant:
      return spec.peak;
    case LearningRateSpec::Kind::kLinear:
      return spec.peak + (spec.final - spec.peak) * t;
    case LearningRateSpec::Kind::kCosine:
      return spec.final + (spec.peak - spec.final) * 0.5 * (1.0 + std::cos(std::numbers::pi * t));
    case LearningRateSpec::Kind::kInverseSquareRoot: {
      const double start = static_cast<double>(std::max<int64_t>(spec.warmup_steps, 1));
      return std::max(spec.final, spec.peak * std::sqrt(start / static_cast<double>(step + 1)));
    }
  }
  CHECK(false) << "learning rate kind " << static_cast<int>(spec.kind);
  return 0;
}

int64_t MicroBatchSize(int64_t batch_size, int64_t micro_batches, int64_t i) {
  CHECK(micro_batches >= 1 && i >= 0 && i < micro_batches) << i << " of " << micro_batches;
  return batch_size / micro_batches + (i < batch_size % micro_batches ? 1 : 0);
}

const char* OptimizerName(const OptimizerSpec& optimizer) {
  struct Visitor {
    const char* operator()(const AdamWSpec&) const { return "adamw"; }
    const char* operator()(const SgdSpec&) const { return "sgd"; }
  };
  return std::visit(Visitor{}, optimizer);
}

const char* ScheduleKindName(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kGpipe:
      return "gpipe";
    case ScheduleKind::kOneForwardOneBackward:
      return "one_forward_one_backward";
  }
  return "unknown";
}

const char* RematerializationName(Rematerialization mode) {
  switch (mode) {
    case Rematerialization::kAlways:
      return "always";
    case Rematerialization::kExceptFirst:
      return "except_first";
    case Rematerialization::kNever:
      return "never";
  }
  return "unknown";
}

}  // namespace stagecoach
