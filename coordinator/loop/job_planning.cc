// What a request asks the planner's thread for: a plan without a job, and the checks before a job.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/device_name.h"
#include "base/status.h"
#include "coordinator/job/resume_check.h"
#include "coordinator/loop/job_loop.h"

namespace stagecoach {
namespace {

constexpr size_t kMostPlanning = 256;  // requests at a time

absl::StatusOr<Plan> PlanFor(const JobSpec& spec, const std::vector<StageView>& fleet) {
  RETURN_IF_ERROR(ValidateJobSpec(spec));
  PlanAssumptions assumptions;
  for (const StageView& stage : fleet) {
    const int64_t limit = stage.registration.memory_limit_bytes;
    int64_t& smallest = assumptions.stage_memory_limit_bytes;
    if (stage.state == StageState::kLost) continue;
    if (limit > 0) smallest = smallest == 0 ? limit : std::min(smallest, limit);
    assumptions.on_card.push_back(IsCudaDevice(stage.registration.device));
  }
  const int alive = static_cast<int>(assumptions.on_card.size());
  const int stages = spec.pipeline.stages > 0 ? static_cast<int>(spec.pipeline.stages) : alive;
  if (stages == 0) {
    return absl::FailedPreconditionError(
        "pipeline.stages=auto plans for the registered stages, and there are none; start stage "
        "servers or give a number");
  }
  // By name, as stages are placed; those that have not come are like the last one that has.
  if (alive > 0) assumptions.on_card.resize(stages, assumptions.on_card.back());
  return MakePlan(spec, stages, assumptions, {});
}

}  // namespace

absl::Status JobLoop::RoomToPlan() const {
  if (submitting_.size() + planning_.size() < kMostPlanning) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(kMostPlanning, " jobs are being planned already; try again later"));
}

void JobLoop::PlanJob(const JobSpec& spec, std::function<void(absl::StatusOr<Plan>)> done) {
  if (absl::Status status = RoomToPlan(); !status.ok()) return done(status);
  const uint64_t ticket = ++last_ticket_;
  planning_[ticket] = std::move(done);
  parts_.plan([this, spec, ticket, fleet = fleet_.View()] {
    parts_.post(
        [this, ticket, plan = PlanFor(spec, fleet)] { planning_.extract(ticket).mapped()(plan); });
  });
}

absl::StatusOr<std::shared_ptr<const JobDefinition>> JobLoop::CheckSpec(const JobSpec& spec) {
  RETURN_IF_ERROR(ValidateJobSpec(spec));
  if (spec.pipeline.stages > 0) {
    RETURN_IF_ERROR(
        MakePlan(spec, static_cast<int>(spec.pipeline.stages), PlanAssumptions{}, {}).status());
  }
  return Define(JournalJob{}, spec);
}

}  // namespace stagecoach
