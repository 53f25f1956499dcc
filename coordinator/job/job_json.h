// Job JSON: the part of a JobState that outlives the coordinator, as text for the journal. It
// leaves out the progress of the current operation: after a restart the job recovers.
// Errors: Decode: DATA_LOSS naming the job and what is wrong.
#ifndef STAGECOACH_COORDINATOR_JOB_JOB_JSON_H_
#define STAGECOACH_COORDINATOR_JOB_JOB_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "coordinator/job/job_state.h"

namespace stagecoach {

std::string EncodeJobState(const JobState& state);
// Fills `state`, made by NewJobState, from the text.
absl::Status DecodeJobState(const std::string& text, JobState* state);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_JOB_JSON_H_
