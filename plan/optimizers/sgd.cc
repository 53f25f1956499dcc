#include "plan/optimizers/sgd.h"

#include "operations/updates/sgd_update.h"

namespace stagecoach {
namespace {

class SgdKind final : public FieldKindOf<OptimizerKind, SgdSpec> {
 public:
  std::vector<OptimizerState> States(const KindSpec& optimizer,
                                     const Shape& parameter) const override {
    if (optimizer.As<SgdSpec>().momentum == 0) return {};
    return {{"velocity", parameter}};
  }
  Call Update(const KindSpec& optimizer, bool decays) const override {
    const auto fields = optimizer.As<SgdSpec>();
    return {"sgd_update", ToAttributes(SgdUpdateAttributes{
                              .momentum = fields.momentum,
                              .weight_decay = decays ? fields.weight_decay : 0,
                              .nesterov = fields.nesterov,
                          })};
  }
};

}  // namespace

const OptimizerKind* SgdOptimizerKind() {
  static const auto* const kind = new SgdKind;
  return kind;
}

}  // namespace stagecoach
