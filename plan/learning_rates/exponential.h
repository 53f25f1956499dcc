// exponential: peak * factor^(s / every), not below the final rate. `every` is in steps or in
// epochs. It counts from the job's first step, warm-up included, as in TensorFlow's
// exponential_decay. staircase: the whole part of s / every.
#ifndef STAGECOACH_PLAN_LEARNING_RATES_EXPONENTIAL_H_
#define STAGECOACH_PLAN_LEARNING_RATES_EXPONENTIAL_H_

#include "plan/job/learning_rate_kinds.h"

namespace stagecoach {

struct ExponentialRate {
  static constexpr const char* kKind = "exponential";
  double peak = 0;
  int64_t warmup_steps = 0;
  double warmup_epochs = 0;
  double factor = 1;
  int64_t every_steps = 0;
  double every_epochs = 0;
  bool staircase = false;
  double final = 0;  // the lowest
  template <typename Visitor>
  void Visit(Visitor& visit) {
    VisitWarmUp(visit, peak, warmup_steps, warmup_epochs);
    visit.Positive("factor", factor, 1);
    visit.Count("every_steps", every_steps, 0, kMaxSteps);
    visit.Between("every_epochs", every_epochs, 0, kMaxEpochs);
    visit.Flag("staircase", staircase);
    visit.Between("final", final, 0, peak);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_LEARNING_RATES_EXPONENTIAL_H_
