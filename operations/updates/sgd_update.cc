#include "operations/updates/sgd_update.h"

#include "operations/catalogue.h"

namespace stagecoach {
namespace {

class SgdUpdate final : public UpdateOf<SgdUpdateAttributes> {
 public:
  std::string_view name() const override { return "sgd_update"; }

 private:
  std::vector<UpdateState> StatesOf(const SgdUpdateAttributes& attributes,
                                    const Shape& value) const override {
    if (attributes.momentum == 0) return {};
    return {{"velocity", value}};
  }
  int64_t FlopsOfElement() const override { return 6; }
};

}  // namespace

SgdNumbers NumbersOf(const SgdUpdateAttributes& attributes, const UpdateNumbers& step) {
  return {.gradient_scale = static_cast<float>(step.gradient_scale),
          .learning_rate = static_cast<float>(step.learning_rate),
          .momentum = static_cast<float>(attributes.momentum),
          .weight_decay = static_cast<float>(attributes.weight_decay),
          .nesterov = attributes.nesterov};
}

OperationList SgdUpdateOperations() {
  static const SgdUpdate update;
  return {&update};
}

}  // namespace stagecoach
