// adamw_update: of update t and with g = gradient_scale * gradient,
//   m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2
//   w -= learning_rate * (m / c1 / (sqrt(v / c2) + epsilon) + weight_decay * w)
// Here c = 1 - beta^t, in double.
// States: m, v.
#ifndef STAGECOACH_OPERATIONS_UPDATES_ADAMW_UPDATE_H_
#define STAGECOACH_OPERATIONS_UPDATES_ADAMW_UPDATE_H_

#include "operations/updates/update.h"

namespace stagecoach {

struct AdamWUpdateAttributes {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("beta1", beta1);
    visit.Rate("beta2", beta2);
    visit.Positive("epsilon", epsilon, 1);
    visit.Between("weight_decay", weight_decay, 0, kMaxWeightDecay);
  }
  friend bool operator==(const AdamWUpdateAttributes&, const AdamWUpdateAttributes&) = default;
};

// All numbers of one update, as kernels compute with them.
struct AdamWNumbers {
  float gradient_scale, learning_rate, beta1, beta2, epsilon, weight_decay;
  float correction1, correction2;
};
AdamWNumbers NumbersOf(const AdamWUpdateAttributes& attributes, const UpdateNumbers& step);

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_UPDATES_ADAMW_UPDATE_H_
