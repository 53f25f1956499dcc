// What a request asks the checks' thread for: a plan without a job, and the checks before a job.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "coordinator/job/job_plan.h"
#include "coordinator/loop/job_loop.h"

namespace stagecoach {
namespace {

absl::StatusOr<int> StagesToPlanFor(const JobSpec& spec, const Network& network,
                                    const std::vector<StageView>& fleet) {
  if (spec.pipeline.stages > 0) return static_cast<int>(spec.pipeline.stages);
  const int least = std::max(1, static_cast<int>(spec.pipeline.min_stages));
  int free = 0, alive = 0;
  for (const StageView& stage : fleet) {
    if (stage.state == StageState::kReady) ++free;
    if (stage.state != StageState::kLost) ++alive;
  }
  const int stages = free >= least ? free : alive;  // too few now: once others have ended
  if (stages < least) {
    return absl::FailedPreconditionError(absl::StrCat(
        "pipeline.stages=auto plans for the stages that are free, at least ", least, ", and ",
        stages, stages == 1 ? " is" : " are", " registered; start stage servers or give a number"));
  }
  return static_cast<int>(std::min<int64_t>(
      stages, std::max<int64_t>(1, MostStages(spec.pipeline, std::ssize(network.layers)))));
}

absl::StatusOr<Plan> PlanFor(const JobSpec& spec, const std::vector<StageView>& fleet) {
  ASSIGN_OR_RETURN(const Network network, ExpandValidJob(spec));
  PlanAssumptions assumptions;
  for (const StageView& stage : fleet) {
    const int64_t limit = stage.registration.memory_limit_bytes;
    int64_t& smallest = assumptions.stage_memory_limit_bytes;
    if (stage.state == StageState::kLost) continue;
    if (limit > 0) smallest = smallest == 0 ? limit : std::min(smallest, limit);
    assumptions.cards.push_back(stage.registration.card);
    assumptions.hosts.push_back(stage.registration.host);
    assumptions.kernels.push_back(KernelsOf(stage.registration));
  }
  ASSIGN_OR_RETURN(const int stages, StagesToPlanFor(spec, network, fleet));
  // By name, as stages are placed; those that have not come are like the last one that has.
  if (!assumptions.cards.empty()) {
    const std::optional<CardProfile> last = assumptions.cards.back();
    assumptions.cards.resize(stages, last);
    assumptions.hosts.resize(stages, HostProfile(assumptions.hosts.back()));
    assumptions.kernels.resize(stages, StageKernels(assumptions.kernels.back()));
  }
  return MakePlan(spec, network, stages, assumptions, {});
}

}  // namespace

void JobLoop::PlanJob(const JobSpec& spec, std::function<void(absl::StatusOr<Plan>)> done,
                      std::function<bool()> wanted, const JobCaller& caller) {
  absl::Status status = CheckKnown(caller);
  if (status.ok()) status = RoomToPlan(caller);
  if (!status.ok()) return done(status);
  const uint64_t ticket = ++last_ticket_;
  planning_[ticket] = {std::move(done), caller.name};
  checks_.Add(caller.name, [this, spec, ticket, fleet = fleet_.View(), wanted] {
    const absl::StatusOr<Plan> plan =
        wanted && !wanted() ? absl::CancelledError("the plan is not made: the call was cancelled")
                            : PlanFor(spec, fleet);
    parts_.post([this, ticket, plan] { planning_.extract(ticket).mapped().done(plan); });
  });
}

absl::StatusOr<std::shared_ptr<const JobDefinition>> JobLoop::CheckSpec(const JobSpec& spec) const {
  ASSIGN_OR_RETURN(Network network, ExpandValidJob(spec));
  if (spec.pipeline.stages > 0) {
    const int stages = static_cast<int>(spec.pipeline.stages);
    RETURN_IF_ERROR(MakePlan(spec, network, stages, PlanAssumptions{}, {}).status());
  }
  return Define(JournalJob{}, spec, std::move(network));
}

}  // namespace stagecoach
