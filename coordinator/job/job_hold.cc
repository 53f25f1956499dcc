// Held and resumed: an unfinished job that a coordinator found at its start, and that goes on only
// when somebody asks for it, perhaps with another number of stages.
#include "absl/strings/str_cat.h"
#include "coordinator/job/job_transition.h"

namespace stagecoach {

void JobTransition::Hold(const std::string& why) {
  // Stages of a coordinator that is gone: they need not keep the cell for as long as this takes.
  for (const StageSlot& slot : state_.slots) {
    actions_.push_back(SendRelease{slot.stage, FenceOf(state_)});
  }
  state_.slots.clear();
  Rest(Activity::kHeld);
  Enter(JobPhase::kHeld, why);
}

void JobTransition::On(const JobResumed& event) {
  if (state_.activity != Activity::kHeld) return Stale();
  const int64_t before = spec().pipeline.stages;
  state_.job = event.job;
  const int64_t stages = spec().pipeline.stages;
  // One whose devices stay in their places goes on with as many as it began with, whoever has
  // joined since.
  const bool in_places = spec().pipeline.mixed_devices && HasRun(state_);
  if (!in_places) state_.stages.wanted = static_cast<int>(stages);
  state_.stages.ready_count = 0;
  state_.stages.accepts_fewer = false;
  // Whoever resumes looks on: what failed before the interruption counts anew.
  state_.failures.steps.clear();
  state_.failures.deaths.count = 0;
  state_.failures.loads = 0;
  state_.failures.setbacks = 0;
  BeginGeneration(state_);
  state_.just_resumed = true;
  Enter(JobPhase::kRecovering,
        stages == before ? "resumed"
                         : absl::StrCat("resumed with ", stages, stages == 1 ? " stage" : " stages",
                                        " instead of ", before));
  Search(/*own=*/true);
}

}  // namespace stagecoach
