// Data check: what a client can say about a job's data by the file on its own machine.
#ifndef STAGECOACH_SERVICES_CLI_SPEC_DATA_CHECK_H_
#define STAGECOACH_SERVICES_CLI_SPEC_DATA_CHECK_H_

#include "absl/status/status.h"
#include "plan/job_spec.h"

namespace stagecoach {

// INVALID_ARGUMENT as of plan/text_check.h and plan/text_split.h if the file can be read here and
// plainly is not text, or is too short. What cannot be read here may be there for the stages, which
// check it again: OK.
absl::Status CheckData(const JobSpec& spec);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_DATA_CHECK_H_
