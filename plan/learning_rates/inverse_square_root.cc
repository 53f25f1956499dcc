#include "plan/learning_rates/inverse_square_root.h"

#include <algorithm>
#include <cmath>

namespace stagecoach {
namespace {

class InverseSquareRootKind final : public LearningRateKindOf<InverseSquareRootRate> {
  double Course(const InverseSquareRootRate& rate, const RatePlace& place) const override {
    const double start = static_cast<double>(std::max<int64_t>(place.warmup_steps, 1));
    return std::max(rate.final, rate.peak * std::sqrt(start / static_cast<double>(place.step + 1)));
  }
};

}  // namespace

const LearningRateKind* InverseSquareRootLearningRateKind() {
  static const auto* const kind = new InverseSquareRootKind;
  return kind;
}

}  // namespace stagecoach
