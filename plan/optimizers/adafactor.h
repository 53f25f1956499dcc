// adafactor: the gradient divided by the root of a mean of its squares, as RMSProp's. Of a matrix it
// keeps means of rows and of columns alone: n + m numbers for n * m (Shazeer, Stern, arXiv
// 1804.04235; operations/updates/adafactor_update.h has the formulas). Weight decay is of matrices
// and embeddings only. Keeps column and row of a matrix, square of a vector, and m if there is
// momentum.
#ifndef STAGECOACH_PLAN_OPTIMIZERS_ADAFACTOR_H_
#define STAGECOACH_PLAN_OPTIMIZERS_ADAFACTOR_H_

#include "operations/updates/adafactor_update.h"
#include "plan/job/optimizer_kinds.h"

namespace stagecoach {

struct AdafactorSpec {
  static constexpr const char* kKind = "adafactor";
  double beta1 = 0, decay_power = 0.8, epsilon1 = 1e-30, epsilon2 = 1e-3, clip = 1;
  double weight_decay = 0;
  bool relative_step = false, scale_by_parameter = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    using Limits = AdafactorUpdateAttributes;
    visit.Rate("beta1", beta1);
    visit.Positive("decay_power", decay_power, 1);
    visit.Between("epsilon1", epsilon1, Limits::kLeastEpsilon1, 1);
    visit.Positive("epsilon2", epsilon2, 1);
    visit.ZeroOrBetween("clip", clip, Limits::kLeastClip, Limits::kMostClip);
    visit.Between("weight_decay", weight_decay, 0, kMaxWeightDecay);
    visit.Flag("relative_step", relative_step);
    visit.Flag("scale_by_parameter", scale_by_parameter);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_OPTIMIZERS_ADAFACTOR_H_
