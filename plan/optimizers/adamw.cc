#include "plan/optimizers/adamw.h"

#include "operations/updates/adamw_update.h"

namespace stagecoach {
namespace {

class AdamWKind final : public FieldKindOf<OptimizerKind, AdamWSpec> {
 public:
  std::vector<OptimizerState> States(const KindSpec&, const Shape& parameter) const override {
    return {{"m", parameter}, {"v", parameter}};
  }
  Call Update(const KindSpec& optimizer, bool decays) const override {
    const auto fields = optimizer.As<AdamWSpec>();
    return {"adamw_update", ToAttributes(AdamWUpdateAttributes{
                                .beta1 = fields.beta1,
                                .beta2 = fields.beta2,
                                .epsilon = fields.epsilon,
                                .weight_decay = decays ? fields.weight_decay : 0,
                            })};
  }
};

}  // namespace

const OptimizerKind* AdamWOptimizerKind() {
  static const auto* const kind = new AdamWKind;
  return kind;
}

}  // namespace stagecoach
