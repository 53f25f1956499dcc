// rmsprop: the gradient divided by the root of a mean of its squares s, with momentum. Weight decay
// is added to the gradient, of matrices and embeddings only:
//   g' = g + weight_decay * w; s = decay * s + (1 - decay) * g'^2
//   tensorflow   s begins at 1; v = momentum * v + lr * g' / sqrt(s + epsilon); w -= v. AmoebaNet's
//                numbers are of this form.
//   pytorch      s begins at 0; v = momentum * v + g' / (sqrt(s) + epsilon); w -= lr * v.
// Keeps s, and v if there is momentum.
#ifndef STAGECOACH_PLAN_OPTIMIZERS_RMSPROP_H_
#define STAGECOACH_PLAN_OPTIMIZERS_RMSPROP_H_

#include "operations/updates/rmsprop_update.h"
#include "plan/job/optimizer_kinds.h"

namespace stagecoach {

struct RmsPropSpec {
  static constexpr const char* kKind = "rmsprop";
  using Form = RmsPropForm;
  double decay = 0.9, momentum = 0.9, epsilon = 1.0;
  double weight_decay = 0.0;
  Form form = Form::kTensorFlow;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("decay", decay);
    visit.Rate("momentum", momentum);
    visit.Positive("epsilon", epsilon, 1);
    visit.Between("weight_decay", weight_decay, 0, kMaxWeightDecay);
    visit.Choice("form", form, {"tensorflow", "pytorch"});
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_OPTIMIZERS_RMSPROP_H_
