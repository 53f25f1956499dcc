// inverse_square_root: peak * sqrt(max(warmup_steps, 1) / (s + 1)), not below the final rate.
#ifndef STAGECOACH_PLAN_LEARNING_RATES_INVERSE_SQUARE_ROOT_H_
#define STAGECOACH_PLAN_LEARNING_RATES_INVERSE_SQUARE_ROOT_H_

#include "plan/job/learning_rate_kinds.h"

namespace stagecoach {

struct InverseSquareRootRate {
  static constexpr const char* kKind = "inverse_square_root";
  double peak = 0;
  int64_t warmup_steps = 0;
  double warmup_epochs = 0;
  double final = 0;  // the lowest
  template <typename Visitor>
  void Visit(Visitor& visit) {
    VisitWarmUp(visit, peak, warmup_steps, warmup_epochs);
    visit.Between("final", final, 0, peak);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_LEARNING_RATES_INVERSE_SQUARE_ROOT_H_
