#include "services/cli/output/exit_code.h"

namespace stagecoach {

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitSuccess;
    case absl::StatusCode::kInvalidArgument:
      return kExitUsage;
    case absl::StatusCode::kNotFound:
      return kExitNotFound;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitUnavailable;
    case absl::StatusCode::kCancelled:
      return kExitInterrupted;
    default:
      return kExitFailed;
  }
}

int ExitCodeOf(v1::JobState final_state) {
  if (final_state == v1::JOB_STATE_SUCCEEDED) return kExitSuccess;
  if (final_state == v1::JOB_STATE_CANCELLED) return kExitCancelled;
  return kExitFailed;
}

}  // namespace stagecoach
