#include "plan/optimizers/lamb.h"

#include "operations/updates/lamb_update.h"

namespace stagecoach {
namespace {

class LambKind final : public FieldKindOf<OptimizerKind, LambSpec> {
 public:
  std::vector<OptimizerState> States(const KindSpec&, const Shape& parameter) const override {
    return {{"m", parameter}, {"v", parameter}};
  }
  Call Update(const KindSpec& optimizer, bool decays) const override {
    const auto fields = optimizer.As<LambSpec>();
    return {"lamb_update", ToAttributes(LambUpdateAttributes{
                               .beta1 = fields.beta1,
                               .beta2 = fields.beta2,
                               .epsilon = fields.epsilon,
                               .weight_decay = decays ? fields.weight_decay : 0,
                               .adapt = fields.adapt_all || decays,
                           })};
  }
};

}  // namespace

const OptimizerKind* LambOptimizerKind() {
  static const auto* const kind = new LambKind;
  return kind;
}

}  // namespace stagecoach
