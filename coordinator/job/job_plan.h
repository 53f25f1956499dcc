// Job plan: which layers each stage of a job gets. It can take seconds for a large job, so it is an
// effect and no part of a transition.
// Threads: pure functions, any thread.
// Errors:  as MakePlan.
#ifndef STAGECOACH_COORDINATOR_JOB_JOB_PLAN_H_
#define STAGECOACH_COORDINATOR_JOB_JOB_PLAN_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "plan/plan.h"

namespace stagecoach {

struct JobDefinition;

struct MakeJobPlan {
  Fence fence;
  std::shared_ptr<const JobDefinition> job;
  PlanAssumptions assumptions;  // one stage each
  std::vector<LayerProfile> profile;
};

// The part of a plan that a running job needs.
struct JobPlan {
  Partition partition;
  double step_seconds = 0;  // forecast
  double bubble_ideal = 0;
};

absl::StatusOr<JobPlan> RunPlan(const MakeJobPlan& action);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_JOB_PLAN_H_
