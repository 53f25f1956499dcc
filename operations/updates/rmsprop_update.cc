#include "operations/updates/rmsprop_update.h"

#include "operations/catalogue.h"

namespace stagecoach {
namespace {

class RmsPropUpdate final : public UpdateOf<RmsPropUpdateAttributes> {
 public:
  std::string_view name() const override { return "rmsprop_update"; }

 private:
  std::vector<UpdateState> StatesOf(const RmsPropUpdateAttributes& attributes,
                                    const Shape& value) const override {
    if (attributes.momentum == 0) return {{"square", value}};
    return {{"square", value}, {"velocity", value}};
  }
  int64_t FlopsOfElement() const override { return 14; }
};

}  // namespace

RmsPropNumbers NumbersOf(const RmsPropUpdateAttributes& attributes, const UpdateNumbers& step) {
  const auto rate = static_cast<float>(step.learning_rate);
  const auto epsilon = static_cast<float>(attributes.epsilon);
  const bool tensorflow = attributes.form == RmsPropForm::kTensorFlow;
  return {.gradient_scale = static_cast<float>(step.gradient_scale),
          .inner_rate = tensorflow ? rate : 1.0f,
          .outer_rate = tensorflow ? 1.0f : rate,
          .decay = static_cast<float>(attributes.decay),
          .momentum = static_cast<float>(attributes.momentum),
          .inside = tensorflow ? epsilon : 0.0f,
          .outside = tensorflow ? 0.0f : epsilon,
          .weight_decay = static_cast<float>(attributes.weight_decay)};
}

OperationList RmsPropUpdateOperations() {
  static const RmsPropUpdate update;
  return {&update};
}

}  // namespace stagecoach
