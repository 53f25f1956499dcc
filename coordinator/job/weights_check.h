// CheckWeights: puts together what the stages have read of a job's weights to begin with. Each stage
// reads the headers and the tensors of its own cell. All must have read the same headers, and at each
// load the same content.
// Threads: pure function of the job's state.
// Errors:  FAILED_PRECONDITION: two stages read different files, or the content is another one than
//          at the load before. INVALID_ARGUMENT: it is not the one that the file itself names.
// See:     docs/job_files.md, "Weights to begin with".
#ifndef STAGECOACH_COORDINATOR_JOB_WEIGHTS_CHECK_H_
#define STAGECOACH_COORDINATOR_JOB_WEIGHTS_CHECK_H_

#include "absl/status/statusor.h"
#include "coordinator/job/job_state.h"

namespace stagecoach {

// The identity of all that was read. Every stage has loaded.
absl::StatusOr<WeightsManifest> CheckWeights(const JobState& state);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_WEIGHTS_CHECK_H_
