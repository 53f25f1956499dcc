// lamb: AdamW's direction u, scaled to the length of the weights, tensor by tensor (You et al.,
// arXiv 1904.00962):
//   u = m / c1 / (sqrt(v / c2) + epsilon) + weight_decay * w; w -= lr * |w| / |u| * u
// Weight decay applies to matrices and embeddings only. Vectors, as biases and the weights of
// norms, take the step of u itself, as is customary. With adapt_all they are scaled too. A tensor
// whose |w| or |u| is 0 takes the step of u. Keeps two moments.
#ifndef STAGECOACH_PLAN_OPTIMIZERS_LAMB_H_
#define STAGECOACH_PLAN_OPTIMIZERS_LAMB_H_

#include "plan/job/optimizer_kinds.h"

namespace stagecoach {

struct LambSpec {
  static constexpr const char* kKind = "lamb";
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6;
  double weight_decay = 0.01;
  bool adapt_all = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("beta1", beta1);
    visit.Rate("beta2", beta2);
    visit.Positive("epsilon", epsilon, 1);
    visit.Between("weight_decay", weight_decay, 0, kMaxWeightDecay);
    visit.Flag("adapt_all", adapt_all);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_OPTIMIZERS_LAMB_H_
