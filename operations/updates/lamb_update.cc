#include "operations/updates/lamb_update.h"

#include <cmath>
#include <limits>

#include "operations/catalogue.h"

namespace stagecoach {
namespace {

class LambUpdate final : public UpdateOf<LambUpdateAttributes> {
 public:
  std::string_view name() const override { return "lamb_update"; }

 private:
  std::vector<UpdateState> StatesOf(const LambUpdateAttributes&,
                                    const Shape& value) const override {
    return {{"m", value}, {"v", value}};
  }
  int64_t FlopsOfElement() const override { return 22; }
};

}  // namespace

AdamWNumbers NumbersOf(const LambUpdateAttributes& attributes, const UpdateNumbers& step) {
  return NumbersOf(AdamWUpdateAttributes{.beta1 = attributes.beta1,
                                         .beta2 = attributes.beta2,
                                         .epsilon = attributes.epsilon,
                                         .weight_decay = attributes.weight_decay},
                   step);
}

float LambRate(bool adapt, float learning_rate, double value, double direction) {
  if (!adapt || !(value > 0) || !(direction > 0)) return learning_rate;
  const double ratio = std::sqrt(value) / std::sqrt(direction);
  if (!(ratio <= std::numeric_limits<float>::max())) return learning_rate;
  const float rate = learning_rate * static_cast<float>(ratio);
  return std::isfinite(rate) ? rate : learning_rate;
}

OperationList LambUpdateOperations() {
  static const LambUpdate update;
  return {&update};
}

}  // namespace stagecoach
