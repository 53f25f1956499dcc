// Exit codes of the program `stagecoach`.
// See:       docs/clients.md.
#ifndef STAGECOACH_SERVICES_CLI_OUTPUT_EXIT_CODE_H_
#define STAGECOACH_SERVICES_CLI_OUTPUT_EXIT_CODE_H_

#include "absl/status/status.h"
#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

enum ExitCode : int {
  kExitSuccess = 0,
  kExitFailed = 1,  // the job failed, or any other error
  kExitUsage = 2,   // command line or job spec
  kExitNotFound = 3,
  kExitUnavailable = 4,  // no coordinator, or a deadline
  kExitCancelled = 5,    // the job was cancelled
  kExitInterrupted = 130,
};

int ExitCodeOf(const absl::Status& status);
int ExitCodeOf(v1::JobState final_state);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_OUTPUT_EXIT_CODE_H_
