#include "plan/optimizers/sgd.h"

namespace stagecoach {
namespace {

class SgdKind final : public FieldKindOf<OptimizerKind, SgdSpec> {
 public:
  std::vector<std::string> Slots(const KindSpec& optimizer) const override {
    if (optimizer.As<SgdSpec>().momentum == 0) return {};
    return {kVelocitySlot};
  }
};

}  // namespace

const OptimizerKind* SgdOptimizerKind() {
  static const auto* const kind = new SgdKind;
  return kind;
}

}  // namespace stagecoach
