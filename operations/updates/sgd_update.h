// sgd_update: v = momentum * v + g; w -= learning_rate * (v + weight_decay * w), with g =
// gradient_scale * gradient. With nesterov g + momentum * v, of the new v, takes the place of v in
// the second formula. Without momentum v is g.
// States: velocity, if there is momentum.
#ifndef STAGECOACH_OPERATIONS_UPDATES_SGD_UPDATE_H_
#define STAGECOACH_OPERATIONS_UPDATES_SGD_UPDATE_H_

#include "operations/updates/update.h"

namespace stagecoach {

struct SgdUpdateAttributes {
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("momentum", momentum);
    visit.Between("weight_decay", weight_decay, 0, kMaxWeightDecay);
    visit.Flag("nesterov", nesterov);
  }
  friend bool operator==(const SgdUpdateAttributes&, const SgdUpdateAttributes&) = default;
};

// All numbers of one update, as kernels compute with them.
struct SgdNumbers {
  float gradient_scale, learning_rate, momentum, weight_decay;
  bool nesterov;
};
SgdNumbers NumbersOf(const SgdUpdateAttributes& attributes, const UpdateNumbers& step);

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_UPDATES_SGD_UPDATE_H_
