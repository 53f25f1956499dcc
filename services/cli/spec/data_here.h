// DataHere: whether a job's data, and its file of initial weights, lie on this machine, as those of a
// job file do. What is in a data set of the cluster is not looked for.
// Threads: pure function of its argument and the file system.
// Errors:  INVALID_ARGUMENT with the place in the job file, the path and why it cannot be read. Or
//          with the refused part of its content (services/cli/spec/data_check.h, weights_here.h).
#ifndef STAGECOACH_SERVICES_CLI_SPEC_DATA_HERE_H_
#define STAGECOACH_SERVICES_CLI_SPEC_DATA_HERE_H_

#include "absl/status/status.h"
#include "services/cli/spec/spec_reader.h"

namespace stagecoach {

enum class StagesAre { kElsewhere, kHere };
// Stages on this machine find here what is `on_stages`.
absl::Status CheckDataHere(const ValidSpecFile& spec_file,
                           StagesAre stages = StagesAre::kElsewhere);
// For stages on this machine, which have no cluster's store: refuses data sets and buckets.
absl::Status CheckAllIsHere(const ValidSpecFile& spec_file);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_DATA_HERE_H_
