#include "plan/optimizers/lamb.h"

namespace stagecoach {
namespace {

class LambKind final : public FieldKindOf<OptimizerKind, LambSpec> {
 public:
  std::vector<std::string> Slots(const KindSpec&) const override {
    return {kLambFirstSlot, kLambSecondSlot};
  }
};

}  // namespace

const OptimizerKind* LambOptimizerKind() {
  static const auto* const kind = new LambKind;
  return kind;
}

}  // namespace stagecoach
