#include "plan/optimizers/rmsprop.h"

namespace stagecoach {
namespace {

class RmsPropKind final : public FieldKindOf<OptimizerKind, RmsPropSpec> {
 public:
  std::vector<OptimizerState> States(const KindSpec& optimizer,
                                     const Shape& parameter) const override {
    const auto fields = optimizer.As<RmsPropSpec>();
    const bool tensorflow = fields.form == RmsPropForm::kTensorFlow;
    const OptimizerState square{"square", parameter, tensorflow ? 1.0f : 0.0f};
    if (fields.momentum == 0) return {square};
    // v has another meaning in each form, so neither may go on with the other's.
    return {square, {tensorflow ? "velocity_with_rate" : "velocity", parameter}};
  }
  Call Update(const KindSpec& optimizer, bool decays) const override {
    const auto fields = optimizer.As<RmsPropSpec>();
    return {"rmsprop_update", ToAttributes(RmsPropUpdateAttributes{
                                  .decay = fields.decay,
                                  .momentum = fields.momentum,
                                  .epsilon = fields.epsilon,
                                  .weight_decay = decays ? fields.weight_decay : 0,
                                  .form = fields.form,
                              })};
  }
};

}  // namespace

const OptimizerKind* RmsPropOptimizerKind() {
  static const auto* const kind = new RmsPropKind;
  return kind;
}

}  // namespace stagecoach
