#include "coordinator/job/job_plan.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "coordinator/job/job_state.h"
#include "plan/field_check.h"

namespace stagecoach {

absl::Status CheckPlanSize(const JobSpec& spec, int stages) {
  const int64_t micro_batches = spec.training.micro_batches;
  if (stages <= 0 || micro_batches <= kMostPlanned / stages) return absl::OkStatus();
  return FieldError("training.micro_batches", absl::StrCat(micro_batches),
                    absl::StrCat("with pipeline.stages=", stages, " at most ",
                                 kMostPlanned / stages, ": their product may be ", kMostPlanned));
}

absl::StatusOr<JobPlan> RunPlan(const MakeJobPlan& action) {
  const int stages = static_cast<int>(action.assumptions.cards.size());
  JobSpec spec = action.job->spec;
  RETURN_IF_ERROR(CheckPlanSize(spec, stages));  // stages: auto is known only now
  spec.pipeline.stages = stages;
  const PartitionSpec& partition = spec.pipeline.partition;
  if (partition.kind == PartitionSpec::Kind::kCuts &&
      static_cast<int>(partition.cuts.size()) + 1 != stages) {
    spec.pipeline.partition = PartitionSpec{};  // fewer stages than the cuts were made for
  }
  ASSIGN_OR_RETURN(Plan plan, MakePlan(spec, stages, action.assumptions, action.profile));
  return JobPlan{std::move(plan.partition), plan.step_seconds};
}

}  // namespace stagecoach
