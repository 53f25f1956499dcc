// cosine: from the peak by half a cosine to the final rate, reached one step after the job's last.
#ifndef STAGECOACH_PLAN_LEARNING_RATES_COSINE_H_
#define STAGECOACH_PLAN_LEARNING_RATES_COSINE_H_

#include "plan/job/learning_rate_kinds.h"

namespace stagecoach {

struct CosineRate {
  static constexpr const char* kKind = "cosine";
  double peak = 0;
  int64_t warmup_steps = 0;
  double warmup_epochs = 0;
  double final = 0;  // one step after the last one
  template <typename Visitor>
  void Visit(Visitor& visit) {
    VisitWarmUp(visit, peak, warmup_steps, warmup_epochs);
    visit.Between("final", final, 0, peak);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_LEARNING_RATES_COSINE_H_
