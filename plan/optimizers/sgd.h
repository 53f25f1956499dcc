// sgd: v = momentum * v + g; w -= lr * (v + weight_decay * w). Weight decay is of matrices and
// embeddings only. With nesterov, g + momentum * v takes the place of v in the second formula.
// Keeps v if there is momentum.
#ifndef STAGECOACH_PLAN_OPTIMIZERS_SGD_H_
#define STAGECOACH_PLAN_OPTIMIZERS_SGD_H_

#include "plan/job/optimizer_kinds.h"

namespace stagecoach {

struct SgdSpec {
  static constexpr const char* kKind = "sgd";
  double momentum = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("momentum", momentum);
    visit.Between("weight_decay", weight_decay, 0, kMaxWeightDecay);
    visit.Flag("nesterov", nesterov);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_OPTIMIZERS_SGD_H_
