#include "plan/learning_rates/constant.h"

namespace stagecoach {
namespace {

class ConstantKind final : public LearningRateKindOf<ConstantRate> {
  double Course(const ConstantRate& rate, const RatePlace&) const override { return rate.peak; }
};

}  // namespace

const LearningRateKind* ConstantLearningRateKind() {
  static const auto* const kind = new ConstantKind;
  return kind;
}

}  // namespace stagecoach
