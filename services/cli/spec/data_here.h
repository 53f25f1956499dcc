// DataHere: whether the data that a job names lies on this machine. The stages read it, on the
// machines of the pipeline's ends; whoever runs them here, or checks a job, wants to know before.
// Threads: pure function of its argument and the file system.
// Errors:  INVALID_ARGUMENT with the place in the job file, the path and why it cannot be read.
#ifndef STAGECOACH_SERVICES_CLI_SPEC_DATA_HERE_H_
#define STAGECOACH_SERVICES_CLI_SPEC_DATA_HERE_H_

#include "absl/status/status.h"
#include "services/cli/spec/spec_reader.h"

namespace stagecoach {

absl::Status CheckDataHere(const SpecFile& spec_file);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_DATA_HERE_H_
