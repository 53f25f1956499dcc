#include "plan/optimizers/adamw.h"

namespace stagecoach {
namespace {

class AdamWKind final : public FieldKindOf<OptimizerKind, AdamWSpec> {
 public:
  std::vector<std::string> Slots(const KindSpec&) const override {
    return {kFirstMomentSlot, kSecondMomentSlot};
  }
};

}  // namespace

const OptimizerKind* AdamWOptimizerKind() {
  static const auto* const kind = new AdamWKind;
  return kind;
}

}  // namespace stagecoach
