#include "plan/learning_rates/noam.h"

#include <cmath>

namespace stagecoach {
namespace {

// The rate of step `count`, from 1, if the warm-up is over.
double Decayed(const NoamRate& rate, int64_t count) {
  return rate.rate / std::sqrt(static_cast<double>(rate.width) * static_cast<double>(count));
}

class NoamKind final : public FieldKindOf<LearningRateKind, NoamRate> {
 public:
  double Peak(const LearningRateSpec& rate) const override {
    const auto fields = rate.As<NoamRate>();
    return Decayed(fields, fields.warmup_steps);
  }
  RateSpan WarmUp(const LearningRateSpec& rate) const override {
    return {.steps = static_cast<double>(rate.As<NoamRate>().warmup_steps)};
  }
  double AfterWarmUp(const LearningRateSpec& rate, const RatePlace& place) const override {
    return Decayed(rate.As<NoamRate>(), place.step + 1);
  }
};

}  // namespace

const LearningRateKind* NoamLearningRateKind() {
  static const auto* const kind = new NoamKind;
  return kind;
}

}  // namespace stagecoach
