#include "plan/learning_rates/exponential.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "plan/job/epochs.h"

namespace stagecoach {
namespace {

class ExponentialKind final : public LearningRateKindOf<ExponentialRate> {
 public:
  absl::Status CheckSpans(const LearningRateSpec& rate) const override {
    const auto fields = rate.As<ExponentialRate>();
    RETURN_IF_ERROR(
        CheckRateEpochs("training.learning_rate.exponential.every_epochs", fields.every_epochs));
    if ((fields.every_steps > 0) != (fields.every_epochs > 0)) return absl::OkStatus();
    return FieldError("training.learning_rate.exponential.every_steps",
                      absl::StrCat(fields.every_steps),
                      "give every_steps or every_epochs, and not both");
  }
  bool CountsEpochs(const LearningRateSpec& rate) const override {
    const auto fields = rate.As<ExponentialRate>();
    return fields.warmup_epochs > 0 || fields.every_epochs > 0;
  }

 private:
  double Course(const ExponentialRate& rate, const RatePlace& place) const override {
    const RateSpan every = {static_cast<double>(rate.every_steps), rate.every_epochs};
    double times = static_cast<double>(place.step) / every.InSteps(place.steps_per_epoch);
    if (rate.staircase) times = WholeSpans(times);
    return std::max(rate.final, rate.peak * std::pow(rate.factor, times));
  }
};

}  // namespace

const LearningRateKind* ExponentialLearningRateKind() {
  static const auto* const kind = new ExponentialKind;
  return kind;
}

}  // namespace stagecoach
