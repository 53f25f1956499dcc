// linear: from the peak in a line to the final rate, one step behind the job's last one.
#ifndef STAGECOACH_PLAN_LEARNING_RATES_LINEAR_H_
#define STAGECOACH_PLAN_LEARNING_RATES_LINEAR_H_

#include "plan/job/learning_rate_kinds.h"

namespace stagecoach {

struct LinearRate {
  static constexpr const char* kKind = "linear";
  double peak = 0;
  int64_t warmup_steps = 0;
  double warmup_epochs = 0;
  double final = 0;  // one step behind the last one
  template <typename Visitor>
  void Visit(Visitor& visit) {
    VisitWarmUp(visit, peak, warmup_steps, warmup_epochs);
    visit.Between("final", final, 0, peak);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_LEARNING_RATES_LINEAR_H_
