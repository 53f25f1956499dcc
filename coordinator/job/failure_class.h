// What a failed operation says about its job, which decides whether it is worth another attempt.
#ifndef STAGECOACH_COORDINATOR_JOB_FAILURE_CLASS_H_
#define STAGECOACH_COORDINATOR_JOB_FAILURE_CLASS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "coordinator/job/job_state.h"

namespace stagecoach {

enum class FailureClass : uint8_t {
  // No other attempt would mend it: the job ends.
  kJob,
  // A reason of the stage's own, as a kernel that failed. The same step failing so on different stages is poison.
  kStage,
  // A process, a connection, a disk, or time: never the job's fault, however often. What a signal of its own ended is
  // counted by itself (StageDied).
  kWorld
};

// Of what a stage answered to an operation. What gRPC makes up for a server that did not answer has to be UNAVAILABLE
// by then (services/common/grpc/own_error.h). has_run: the job has run before, so that a stage which finds no file or no
// memory for it is a bad choice of stage.
FailureClass ClassOf(Activity activity, const absl::Status& status, bool has_run);

// How long a job waits before it tries again, after so many recoveries in a row in which it got no further: not at all
// after the first two, then 1 s, and each time twice as long up to a minute.
double BackOffSeconds(int64_t setbacks);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_FAILURE_CLASS_H_
