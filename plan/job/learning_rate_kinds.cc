#include "plan/job/learning_rate_kinds.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/listed.h"
#include "plan/job/epochs.h"

namespace stagecoach {
namespace {

constexpr char kDefaultForm[] = "constant";
constexpr double kDefaultPeak = 1e-3;

}  // namespace

// Each has a file in plan/learning_rates, which defines `const LearningRateKind*
// ConstantLearningRateKind()`, and a message in proto/stagecoach/v1/training.proto.
STAGECOACH_LISTED(Giver<const LearningRateKind*>, LearningRateKind,  //
                  Constant, Cosine, Exponential, InverseSquareRoot, Linear, Noam, Step)

const KindList<LearningRateKind>& LearningRateKinds() {
  static const auto* const list = new KindList<LearningRateKind>(
      "training.learning_rate", "form of the learning rate", CallEach(kListedLearningRateKind));
  return *list;
}

LearningRateSpec::LearningRateSpec() {
  kind = kDefaultForm;
  attributes = LearningRateKinds().Named(kind).Defaults();
  attributes.Set("peak", kDefaultPeak);
}

namespace {

int64_t WarmUpSteps(const LearningRateKind& kind, const LearningRateSpec& rate,
                    double steps_per_epoch) {
  const RateSpan span = kind.WarmUp(rate);
  const double steps =
      span.epochs > 0 ? LeastSteps(span.InSteps(steps_per_epoch)) : std::ceil(span.steps);
  return static_cast<int64_t>(steps);
}

}  // namespace

double LearningRateAt(const LearningRateSpec& rate, int64_t step, int64_t steps,
                      double steps_per_epoch) {
  CHECK(step >= 0) << "step " << step;
  const LearningRateKind& kind = LearningRateKinds().Named(rate.kind);
  CHECK(steps_per_epoch > 0 || !kind.CountsEpochs(rate)) << rate.kind;
  const int64_t warmup = WarmUpSteps(kind, rate, steps_per_epoch);
  if (step < warmup) {
    return kind.Peak(rate) * static_cast<double>(step + 1) / static_cast<double>(warmup);
  }
  const double length = static_cast<double>(std::max<int64_t>(steps - warmup, 1));
  return kind.AfterWarmUp(rate, {.step = step,
                                 .warmup_steps = warmup,
                                 .done = std::min(1.0, static_cast<double>(step - warmup) / length),
                                 .steps_per_epoch = steps_per_epoch});
}

absl::Status CheckRateEpochs(const std::string& path, double epochs) {
  if (epochs == 0) return absl::OkStatus();
  return CheckReal(path, epochs, {.low = kMinEpochs, .high = kMaxEpochs});
}

absl::Status ValidateLearningRate(const LearningRateSpec& rate) {
  RETURN_IF_ERROR(LearningRateKinds().Check(rate));
  const LearningRateKind& kind = LearningRateKinds().Named(rate.kind);
  if (kind.Peak(rate) == 0) {
    return FieldError(absl::StrCat("training.learning_rate.", rate.kind, ".peak"), "0",
                      "must be above 0, or nothing is learned");
  }
  const RateSpan warmup = kind.WarmUp(rate);
  if (warmup.steps > 0 && warmup.epochs > 0) {
    return FieldError(absl::StrCat("training.learning_rate.", rate.kind, ".warmup_epochs"),
                      absl::StrCat(warmup.epochs), "must be 0 where warmup_steps are given");
  }
  RETURN_IF_ERROR(CheckRateEpochs(
      absl::StrCat("training.learning_rate.", rate.kind, ".warmup_epochs"), warmup.epochs));
  return kind.CheckSpans(rate);
}

absl::Status CheckWarmUp(const LearningRateSpec& rate, int64_t steps, double steps_per_epoch) {
  const LearningRateKind& kind = LearningRateKinds().Named(rate.kind);
  const RateSpan given = kind.WarmUp(rate);
  const int64_t warmup = WarmUpSteps(kind, rate, steps_per_epoch);
  if (warmup <= steps) return absl::OkStatus();
  const std::string form = absl::StrCat("training.learning_rate.", rate.kind);
  if (given.epochs > 0) {
    return FieldError(absl::StrCat(form, ".warmup_epochs"), absl::StrCat(given.epochs),
                      absl::StrCat("that are ", warmup, " steps, and the job has ", steps));
  }
  return FieldError(absl::StrCat(form, ".warmup_steps"), absl::StrCat(warmup),
                    absl::StrCat("must be <= training.steps = ", steps));
}

}  // namespace stagecoach
