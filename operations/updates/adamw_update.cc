#include "operations/updates/adamw_update.h"

#include <cmath>

#include "operations/catalogue.h"

namespace stagecoach {
namespace {

class AdamWUpdate final : public UpdateOf<AdamWUpdateAttributes> {
 public:
  std::string_view name() const override { return "adamw_update"; }

 private:
  std::vector<UpdateState> StatesOf(const AdamWUpdateAttributes&,
                                    const Shape& value) const override {
    return {{"m", value}, {"v", value}};
  }
  int64_t FlopsOfElement() const override { return 16; }
};

}  // namespace

AdamWNumbers NumbersOf(const AdamWUpdateAttributes& attributes, const UpdateNumbers& step) {
  return {.gradient_scale = static_cast<float>(step.gradient_scale),
          .learning_rate = static_cast<float>(step.learning_rate),
          .beta1 = static_cast<float>(attributes.beta1),
          .beta2 = static_cast<float>(attributes.beta2),
          .epsilon = static_cast<float>(attributes.epsilon),
          .weight_decay = static_cast<float>(attributes.weight_decay),
          .correction1 = static_cast<float>(1.0 - std::pow(attributes.beta1, step.t())),
          .correction2 = static_cast<float>(1.0 - std::pow(attributes.beta2, step.t()))};
}

OperationList AdamWUpdateOperations() {
  static const AdamWUpdate update;
  return {&update};
}

}  // namespace stagecoach
