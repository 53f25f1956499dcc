#include "plan/optimizers/adafactor.h"

namespace stagecoach {
namespace {

class AdafactorKind final : public FieldKindOf<OptimizerKind, AdafactorSpec> {
 public:
  std::vector<OptimizerState> States(const KindSpec& optimizer,
                                     const Shape& parameter) const override {
    std::vector<OptimizerState> states;
    for (UpdateState& state :
         AdafactorStates(optimizer.As<AdafactorSpec>().beta1 != 0, parameter)) {
      states.push_back({std::string(state.name), std::move(state.shape)});
    }
    return states;
  }
  Call Update(const KindSpec& optimizer, bool decays) const override {
    const auto fields = optimizer.As<AdafactorSpec>();
    return {"adafactor_update", ToAttributes(AdafactorUpdateAttributes{
                                    .beta1 = fields.beta1,
                                    .decay_power = fields.decay_power,
                                    .epsilon1 = fields.epsilon1,
                                    .epsilon2 = fields.epsilon2,
                                    .clip = fields.clip,
                                    .weight_decay = decays ? fields.weight_decay : 0,
                                    .relative_step = fields.relative_step,
                                    .scale_by_parameter = fields.scale_by_parameter,
                                })};
  }
};

}  // namespace

const OptimizerKind* AdafactorOptimizerKind() {
  static const auto* const kind = new AdafactorKind;
  return kind;
}

}  // namespace stagecoach
