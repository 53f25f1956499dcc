#include "plan/learning_rates/linear.h"

namespace stagecoach {
namespace {

class LinearKind final : public LearningRateKindOf<LinearRate> {
  double Course(const LinearRate& rate, const RatePlace& place) const override {
    return rate.peak + (rate.final - rate.peak) * place.done;
  }
};

}  // namespace

const LearningRateKind* LinearLearningRateKind() {
  static const auto* const kind = new LinearKind;
  return kind;
}

}  // namespace stagecoach
