// Data check: what a client can say about a job's data by the file on its own machine.
#ifndef STAGECOACH_SERVICES_CLI_SPEC_DATA_CHECK_H_
#define STAGECOACH_SERVICES_CLI_SPEC_DATA_CHECK_H_

#include "absl/status/status.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

// INVALID_ARGUMENT as DataKind::CheckFile (plan/job/data_kinds.h) if a file can be read here and its head or its size cannot
// be trained on, as what plainly is not text for data.text. What cannot be read here may be there for the stages,
// which check it again: OK.
absl::Status CheckDataFiles(const JobSpec& spec, const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_DATA_CHECK_H_
