#include "plan/learning_rates/step.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/field_check.h"
#include "plan/job/epochs.h"

namespace stagecoach {
namespace {

template <typename Number>
bool Ascend(const std::vector<Number>& numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<Number>()) ==
         numbers.end();
}

class StepKind final : public LearningRateKindOf<StepRate> {
 public:
  absl::Status CheckSpans(const LearningRateSpec& rate) const override {
    const auto fields = rate.As<StepRate>();
    const std::string path = "training.learning_rate.step.";
    if (fields.milestones.empty() == fields.milestone_epochs.empty()) {
      return FieldError(path + "milestones", absl::StrCat(fields.milestones.size(), " steps"),
                        "give milestones or milestone_epochs, and not both");
    }
    if (!Ascend(fields.milestones)) {
      return FieldError(path + "milestones", absl::StrJoin(fields.milestones, ", "), "must ascend");
    }
    if (!Ascend(fields.milestone_epochs)) {
      return FieldError(path + "milestone_epochs", absl::StrJoin(fields.milestone_epochs, ", "),
                        "must ascend");
    }
    return absl::OkStatus();
  }
  bool CountsEpochs(const LearningRateSpec& rate) const override {
    const auto fields = rate.As<StepRate>();
    return fields.warmup_epochs > 0 || !fields.milestone_epochs.empty();
  }

 private:
  double Course(const StepRate& rate, const RatePlace& place) const override {
    int64_t passed = 0;
    for (const int64_t milestone : rate.milestones) passed += place.step >= milestone;
    for (const double epoch : rate.milestone_epochs) {
      passed += static_cast<double>(place.step) >= LeastSteps(epoch * place.steps_per_epoch);
    }
    return rate.peak * std::pow(rate.factor, static_cast<double>(passed));
  }
};

}  // namespace

const LearningRateKind* StepLearningRateKind() {
  static const auto* const kind = new StepKind;
  return kind;
}

}  // namespace stagecoach
