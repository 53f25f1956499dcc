// lamb_update: m and v as adamw_update's (You et al., arXiv 1904.00962), and
//   u = m / c1 / (sqrt(v / c2) + epsilon) + weight_decay * w; w -= learning_rate * ratio * u
// Here ratio is |w| / |u| of the whole parameter, w before the update. It is 1 if it does not adapt
// or one of the two is 0.
// States: m, v.
#ifndef STAGECOACH_OPERATIONS_UPDATES_LAMB_UPDATE_H_
#define STAGECOACH_OPERATIONS_UPDATES_LAMB_UPDATE_H_

#include "operations/updates/adamw_update.h"

namespace stagecoach {

struct LambUpdateAttributes {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6, weight_decay = 0;
  bool adapt = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("beta1", beta1);
    visit.Rate("beta2", beta2);
    visit.Positive("epsilon", epsilon, 1);
    visit.Between("weight_decay", weight_decay, 0, kMaxWeightDecay);
    visit.Flag("adapt", adapt);
  }
  friend bool operator==(const LambUpdateAttributes&, const LambUpdateAttributes&) = default;
};

// Those of the direction u are AdamW's.
AdamWNumbers NumbersOf(const LambUpdateAttributes& attributes, const UpdateNumbers& step);

// The rate of the step along u, from the squared norms of value and u. It is not adapted if a norm
// is 0, or if the adapted rate would be no finite float: 0 times infinity is NaN. The cuda back
// end's kernel has the same.
float LambRate(bool adapt, float learning_rate, double value, double direction);

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_UPDATES_LAMB_UPDATE_H_
