#include "plan/optimizers/rmsprop.h"

namespace stagecoach {
namespace {

class RmsPropKind final : public FieldKindOf<OptimizerKind, RmsPropSpec> {
 public:
  std::vector<std::string> Slots(const KindSpec& optimizer) const override {
    const auto fields = optimizer.As<RmsPropSpec>();
    if (fields.momentum == 0) return {kSquareSlot};
    return {kSquareSlot, RmsVelocitySlot(fields.form)};
  }
  float SlotStart(const KindSpec& optimizer, std::string_view slot) const override {
    const bool ones = optimizer.As<RmsPropSpec>().form == RmsPropSpec::Form::kTensorFlow;
    return ones && slot == kSquareSlot ? 1.0f : 0.0f;
  }
};

}  // namespace

const OptimizerKind* RmsPropOptimizerKind() {
  static const auto* const kind = new RmsPropKind;
  return kind;
}

}  // namespace stagecoach
