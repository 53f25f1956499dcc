// SameData: a job that is submitted again under its id must have the data that it has in the cluster.
// This is asked before data travels, as the coordinator refuses the job afterwards.
// Threads: the caller's, which waits for the coordinator.
// Errors:  ALREADY_EXISTS: the job is there with other data; what differs, and what to do. OK also if
//          that cannot be known, as of a set that is gone: the coordinator decides.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_SAME_DATA_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_SAME_DATA_H_

#include "absl/status/status.h"
#include "services/cli/client/data_client.h"
#include "services/cli/data/local_parts.h"
#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

// there: the job at the coordinator. spec: of the job file here, whose files these parts are.
absl::Status CheckSameData(DataClient& client, const v1::Job& there, const v1::JobSpec& spec,
                           const LocalParts& parts);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_SAME_DATA_H_
