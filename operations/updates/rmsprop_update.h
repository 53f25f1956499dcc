// rmsprop_update: with g = gradient_scale * gradient + weight_decay * w, the one rate of the two
// that the form names, and 1 for the other,
//   s = decay * s + (1 - decay) * g^2; u = inner_rate * g / (sqrt(s + inside) + outside)
//   velocity = momentum * velocity + u; w -= outer_rate * velocity, or u if there is no momentum
//   tensorflow   inner_rate is the learning rate, inside is epsilon, outside is 0
//   pytorch      outer_rate is the learning rate, inside is 0, outside is epsilon
// States: square (s), and velocity if there is momentum.
#ifndef STAGECOACH_OPERATIONS_UPDATES_RMSPROP_UPDATE_H_
#define STAGECOACH_OPERATIONS_UPDATES_RMSPROP_UPDATE_H_

#include "operations/updates/update.h"

namespace stagecoach {

enum class RmsPropForm { kTensorFlow, kPyTorch };

struct RmsPropUpdateAttributes {
  double decay = 0.9, momentum = 0, epsilon = 1.0, weight_decay = 0;
  RmsPropForm form = RmsPropForm::kTensorFlow;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("decay", decay);
    visit.Rate("momentum", momentum);
    visit.Positive("epsilon", epsilon, 1);
    visit.Between("weight_decay", weight_decay, 0, kMaxWeightDecay);
    visit.Choice("form", form, {"tensorflow", "pytorch"});
  }
  friend bool operator==(const RmsPropUpdateAttributes&, const RmsPropUpdateAttributes&) = default;
};

// All numbers of one update, as kernels compute with them.
struct RmsPropNumbers {
  float gradient_scale, inner_rate, outer_rate, decay, momentum, inside, outside, weight_decay;
};
RmsPropNumbers NumbersOf(const RmsPropUpdateAttributes& attributes, const UpdateNumbers& step);

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_UPDATES_RMSPROP_UPDATE_H_
