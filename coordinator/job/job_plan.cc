#include "coordinator/job/job_plan.h"

#include <utility>

#include "base/errors/status.h"
#include "coordinator/job/job_state.h"

namespace stagecoach {

absl::StatusOr<JobPlan> RunPlan(const MakeJobPlan& action) {
  const int stages = static_cast<int>(action.assumptions.cards.size());
  JobSpec spec = action.job->spec;
  spec.pipeline.stages = stages;  // auto is known only now
  const PartitionSpec& partition = spec.pipeline.partition;
  if (partition.kind == PartitionSpec::Kind::kCuts &&
      static_cast<int>(partition.cuts.size()) + 1 != stages) {
    spec.pipeline.partition = PartitionSpec{};  // fewer stages than the cuts were made for
  }
  ASSIGN_OR_RETURN(Plan plan,
                   MakePlan(spec, action.job->network, stages, action.assumptions, action.profile));
  return JobPlan{std::move(plan.partition), plan.step_seconds, plan.bubble_ideal};
}

}  // namespace stagecoach
