#include "plan/learning_rates/cosine.h"

#include <cmath>
#include <numbers>

namespace stagecoach {
namespace {

class CosineKind final : public LearningRateKindOf<CosineRate> {
  double Course(const CosineRate& rate, const RatePlace& place) const override {
    return rate.final +
           (rate.peak - rate.final) * 0.5 * (1.0 + std::cos(std::numbers::pi * place.done));
  }
};

}  // namespace

const LearningRateKind* CosineLearningRateKind() {
  static const auto* const kind = new CosineKind;
  return kind;
}

}  // namespace stagecoach
