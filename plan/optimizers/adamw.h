// adamw: Adam with decoupled weight decay, of matrices and embeddings only (rank >= 2). Keeps two
// moments.
#ifndef STAGECOACH_PLAN_OPTIMIZERS_ADAMW_H_
#define STAGECOACH_PLAN_OPTIMIZERS_ADAMW_H_

#include "plan/job/optimizer_kinds.h"

namespace stagecoach {

struct AdamWSpec {
  static constexpr const char* kKind = "adamw";
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0.01;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("beta1", beta1);
    visit.Rate("beta2", beta2);
    visit.Positive("epsilon", epsilon, 1);
    visit.Between("weight_decay", weight_decay, 0, kMaxWeightDecay);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_OPTIMIZERS_ADAMW_H_
