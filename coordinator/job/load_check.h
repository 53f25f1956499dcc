// CheckLoad: whether the stages of a load fit each other and the loads before: fingerprints, data,
// weights of a file, steps. What the job keeps of their answers is in LoadFindings.
// Errors: FAILED_PRECONDITION naming two stages, or what the job began with; as CheckEpochs.
#ifndef STAGECOACH_COORDINATOR_JOB_LOAD_CHECK_H_
#define STAGECOACH_COORDINATOR_JOB_LOAD_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/job/job_state.h"

namespace stagecoach {

// All stages have answered. notes: for the job's history, also beside an error.
absl::Status CheckLoad(JobState* state, std::vector<std::string>* notes);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_LOAD_CHECK_H_
