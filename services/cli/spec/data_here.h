// DataHere: whether a job's data, and its file of initial weights, lie on this machine. The stages
// read them: data on the machines of the pipeline's ends, weights on all machines. Commands that
// check a job, or run its stages here, want to know before.
// Threads: pure function of its argument and the file system.
// Errors:  INVALID_ARGUMENT with the place in the job file, the path and why it cannot be read. Or
//          with the refused part of its content (services/cli/spec/data_check.h, weights_here.h).
#ifndef STAGECOACH_SERVICES_CLI_SPEC_DATA_HERE_H_
#define STAGECOACH_SERVICES_CLI_SPEC_DATA_HERE_H_

#include "absl/status/status.h"
#include "services/cli/spec/spec_reader.h"

namespace stagecoach {

absl::Status CheckDataHere(const ValidSpecFile& spec_file);
// Checks the content alone: OK if there is nothing to read here. For stages elsewhere it is only a
// hint: they may have another file under this path.
absl::Status CheckContentHere(const ValidSpecFile& spec_file);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_DATA_HERE_H_
