#include "coordinator/job/view/job_view.h"

#include "base/errors/check.h"

namespace stagecoach {

const char* JobPhaseName(JobPhase phase) {
  switch (phase) {
    case JobPhase::kSubmitted:
      return "submitted";
    case JobPhase::kPlanned:
      return "planned";
    case JobPhase::kLoading:
      return "loading";
    case JobPhase::kRunning:
      return "running";
    case JobPhase::kRecovering:
      return "recovering";
    case JobPhase::kFinishing:
      return "finishing";
    case JobPhase::kSucceeded:
      return "succeeded";
    case JobPhase::kFailed:
      return "failed";
    case JobPhase::kCancelled:
      return "cancelled";
    case JobPhase::kHeld:
      return "held";
  }
  CHECK(false) << "phase " << static_cast<int>(phase) << " has no name";
}

JobSummary SummaryOf(const JobSpec& spec) {
  return {spec.name,
          spec.network.kind,
          spec.data.kind,
          spec.training.batch_size,
          spec.training.micro_batches,
          spec.training.epochs};
}

bool IsTerminal(JobPhase phase) {
  return phase == JobPhase::kSucceeded || phase == JobPhase::kFailed ||
         phase == JobPhase::kCancelled;
}

}  // namespace stagecoach
