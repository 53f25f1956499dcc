#include "plan/learning_rate_kinds.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_check.h"

// A line a form. Its file in plan/learning_rates defines `const LearningRateKind* <Name>LearningRateKind()`; its message
// is in proto/stagecoach/v1/model.proto.
#define STAGECOACH_LEARNING_RATE_KINDS(KIND) \
  KIND(Constant)                             \
  KIND(Cosine)                               \
  KIND(InverseSquareRoot)                    \
  KIND(Linear)

namespace stagecoach {
namespace {

constexpr char kDefaultForm[] = "constant";
constexpr double kDefaultPeak = 1e-3;

}  // namespace

#define STAGECOACH_DECLARE(Name) const LearningRateKind* Name##LearningRateKind();
STAGECOACH_LEARNING_RATE_KINDS(STAGECOACH_DECLARE)
#undef STAGECOACH_DECLARE

const KindList<LearningRateKind>& LearningRateKinds() {
#define STAGECOACH_ENTRY(Name) Name##LearningRateKind(),
  static const auto* const list =
      new KindList<LearningRateKind>("training.learning_rate", "form of the learning rate",
                                     {STAGECOACH_LEARNING_RATE_KINDS(STAGECOACH_ENTRY)});
#undef STAGECOACH_ENTRY
  return *list;
}

LearningRateSpec::LearningRateSpec() {
  kind = kDefaultForm;
  attributes = LearningRateKinds().Named(kind).Defaults();
  attributes.Set("peak", kDefaultPeak);
}

double LearningRateAt(const LearningRateSpec& rate, int64_t step, int64_t steps) {
  CHECK(step >= 0) << "step " << step;
  const LearningRateKind& kind = LearningRateKinds().Named(rate.kind);
  const int64_t warmup = kind.WarmUpSteps(rate);
  if (step < warmup) {
    return kind.Peak(rate) * static_cast<double>(step + 1) / static_cast<double>(warmup);
  }
  const double length = static_cast<double>(std::max<int64_t>(steps - warmup, 1));
  return kind.AfterWarmUp(rate,
                          {.step = step,
                           .warmup_steps = warmup,
                           .done = std::min(1.0, static_cast<double>(step - warmup) / length)});
}

absl::Status ValidateLearningRate(const LearningRateSpec& rate, int64_t steps) {
  RETURN_IF_ERROR(LearningRateKinds().Check(rate));
  const int64_t warmup = LearningRateKinds().Named(rate.kind).WarmUpSteps(rate);
  if (warmup <= steps) return absl::OkStatus();
  return FieldError(absl::StrCat("training.learning_rate.", rate.kind, ".warmup_steps"),
                    absl::StrCat(warmup), absl::StrCat("must be <= training.steps = ", steps));
}

}  // namespace stagecoach
