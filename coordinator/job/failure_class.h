// FailureClass: whether a failed operation of a job is worth another attempt.
#ifndef STAGECOACH_COORDINATOR_JOB_FAILURE_CLASS_H_
#define STAGECOACH_COORDINATOR_JOB_FAILURE_CLASS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "coordinator/job/job_state.h"

namespace stagecoach {

enum class FailureClass : uint8_t {
  // No other attempt would mend it: the job ends.
  kJob,
  // A failure of the stage's own, as of a kernel. A step that fails so on different stages is
  // poison.
  kStage,
  // A process, connection, disk or deadline failed. However often, it is not the job's fault.
  // Processes that died by a signal of their own are counted apart (StageDied).
  kWorld
};

// Class of a stage's answer to an operation. A status that gRPC made up, because no server
// answered, must be UNAVAILABLE by then (services/common/grpc/own_error.h). has_run: the job has
// run before. Then a stage that finds no file or no memory for it is a bad choice of stage.
FailureClass ClassOf(Activity activity, const absl::Status& status, bool has_run);

// Back-off of a job that recovers again and again. setbacks: recoveries in a row without progress.
// After the first two there is no wait. Then it is 1 s, doubled each time, up to a minute.
double BackOffSeconds(int64_t setbacks);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_FAILURE_CLASS_H_
