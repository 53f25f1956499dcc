// step: the peak, times factor at each milestone. Milestones are steps or epochs, and count from
// the job's first step, warm-up included.
#ifndef STAGECOACH_PLAN_LEARNING_RATES_STEP_H_
#define STAGECOACH_PLAN_LEARNING_RATES_STEP_H_

#include <vector>

#include "plan/job/learning_rate_kinds.h"

namespace stagecoach {

inline constexpr size_t kMostMilestones = 1000;

struct StepRate {
  static constexpr const char* kKind = "step";
  double peak = 0;
  int64_t warmup_steps = 0;
  double warmup_epochs = 0;
  double factor = 0.1;
  std::vector<int64_t> milestones;       // steps from which the next rate holds
  std::vector<double> milestone_epochs;  // or epochs
  template <typename Visitor>
  void Visit(Visitor& visit) {
    VisitWarmUp(visit, peak, warmup_steps, warmup_epochs);
    visit.Positive("factor", factor, 1);
    visit.Counts("milestones", milestones, 1, kMaxSteps, kMostMilestones);
    visit.Weights("milestone_epochs", milestone_epochs, kMinEpochs, kMaxEpochs, kMostMilestones);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_LEARNING_RATES_STEP_H_
