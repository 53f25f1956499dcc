// How a job ends that has done its last step: well, with its weights exported, or FAILED if it has
// learned nothing. Its checkpoints stay either way.
#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/job/job_transition.h"

namespace stagecoach {
namespace {

constexpr char kRemedy[] =
    "; lower the learning rate or set gradient_clip_norm, and resume from a checkpoint before that";

std::string StepsText(uint64_t steps) {
  return steps == 1 ? "the last step" : absl::StrCat("the last ", steps, " steps");
}

}  // namespace

absl::Status JobTransition::EndStatus() const {
  const auto nonfinite = static_cast<uint64_t>(state_.consecutive_nonfinite);
  const uint64_t start = spec().resume.job.empty()
                             ? 0
                             : static_cast<uint64_t>(std::max<int64_t>(0, state_.resume_step));
  if (state_.step - state_.skipped_steps <= state_.applied_at_start) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no step was applied: all ", state_.step - start, " were skipped, from step ", start + 1,
        " on, as ",
        nonfinite > 0
            ? absl::StrCat("loss or gradients were not finite", kRemedy)
            : "none of their targets counts; look at the ignored class and at the weights of "
              "targets"));
  }
  if (nonfinite > 0) {
    return absl::FailedPreconditionError(absl::StrCat("loss or gradients were not finite in ",
                                                      StepsText(nonfinite), ", from step ",
                                                      state_.nonfinite_since, " on", kRemedy));
  }
  if (state_.nonfinite_evaluation_since > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the loss of the last evaluation is ",
        std::isnan(state_.evaluation_loss) ? "not a number" : "infinite",
        ", from the evaluation at step ", state_.nonfinite_evaluation_since, " on", kRemedy));
  }
  return absl::OkStatus();
}

void JobTransition::Finish() {
  const absl::Status status = EndStatus();
  return status.ok() ? Export() : Fail(status);
}

}  // namespace stagecoach
