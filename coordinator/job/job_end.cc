// How a job ends that has done its last step: well, with its weights exported, or FAILED if it has
// learned nothing. Its checkpoints stay either way.
#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/errors/error_place.h"
#include "base/errors/status.h"
#include "coordinator/job/job_transition.h"

namespace stagecoach {
namespace {

constexpr char kRemedy[] =
    "; lower the learning rate or set gradient_clip_norm, and resume from a checkpoint before that";

std::string StepsText(uint64_t steps) {
  return steps == 1 ? "the last step" : absl::StrCat("the last ", steps, " steps");
}

// After its last step: OK, or why the job has learned nothing.
absl::Status EndStatus(const JobState& state) {
  const auto nonfinite = static_cast<uint64_t>(state.nonfinite.steps);
  const uint64_t start =
      state.job->spec.resume.job.empty()
          ? 0
          : static_cast<uint64_t>(std::max<int64_t>(0, state.origin.resume_step));
  if (state.step - state.results.skipped_steps <= state.origin.applied_steps) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no step was applied: all ", state.step - start, " were skipped, from step ", start + 1,
        " on, as ",
        nonfinite > 0
            ? absl::StrCat("loss or gradients were not finite", kRemedy)
            : "none of their targets counts; look at the ignored class and at the weights of "
              "targets"));
  }
  if (nonfinite > 0) {
    return absl::FailedPreconditionError(absl::StrCat("loss or gradients were not finite in ",
                                                      StepsText(nonfinite), ", from step ",
                                                      state.nonfinite.since, " on", kRemedy));
  }
  if (state.nonfinite.evaluation_since > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the loss of the last evaluation is ",
        std::isnan(state.results.evaluation_loss) ? "not a number" : "infinite",
        ", from the evaluation at step ", state.nonfinite.evaluation_since, " on", kRemedy));
  }
  return absl::OkStatus();
}

}  // namespace

void JobTransition::Finish() {
  if (const absl::Status status = EndStatus(state_); !status.ok()) return Fail(status);
  BeginOperation(Activity::kExport, state_.limits.effect_deadline_seconds);
  actions_.push_back(
      ExportCheckpoint{FenceOf(state_), state_.checkpoints.last.ref, spec().checkpoint.keep});
}

void JobTransition::On(const WeightsExported& event) {
  if (!Expects(Activity::kExport, event.fence)) return;
  if (const absl::Status& status = event.result.status(); !status.ok()) {
    // A step is only known to have spoilt them by the next one's loss: this is the last one's
    // doing.
    const absl::Status failed =
        Annotate(status, absl::StrCat("export of the weights after step ", state_.step));
    // Away, or the checkpoint is broken by now: the one before it leads here, too.
    return IsOfTheDisk(status) ? Recover(TextAt(failed.ToString(), Place(state_))) : Fail(failed);
  }
  state_.results.weights_digest = event.result->digest;
  state_.results.weights_folder = event.result->folder;
  End(JobPhase::kSucceeded, state_.reached.text);
}

}  // namespace stagecoach
