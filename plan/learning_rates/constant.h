// constant: the peak, after the warm-up.
#ifndef STAGECOACH_PLAN_LEARNING_RATES_CONSTANT_H_
#define STAGECOACH_PLAN_LEARNING_RATES_CONSTANT_H_

#include "plan/job/learning_rate_kinds.h"

namespace stagecoach {

struct ConstantRate {
  static constexpr const char* kKind = "constant";
  double peak = 0;
  int64_t warmup_steps = 0;
  double warmup_epochs = 0;

  template <typename Visitor>
  void Visit(Visitor& visit) {
    VisitWarmUp(visit, peak, warmup_steps, warmup_epochs);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_LEARNING_RATES_CONSTANT_H_
