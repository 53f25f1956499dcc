// SaveTrace: asks for a job's trace and writes it as Chrome JSON.
// Threads: the command's.
// Errors:  the coordinator's; UNAVAILABLE: no stage answered; FAILED_PRECONDITION: no stage holds a
//          span of the job, or the file cannot be written.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_SAVE_TRACE_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_SAVE_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/client/job_client.h"
#include "services/cli/output/console.h"

namespace stagecoach {

struct SavedTrace {
  std::string file;
  size_t steps = 0, stages = 0;      // of the trace; stages include the missing ones
  std::vector<std::string> missing;  // stages that did not answer
};

// Notes the saved trace and the stages missing in it. file "-": standard output.
absl::StatusOr<SavedTrace> SaveTrace(JobClient& client, const std::string& job, uint32_t steps,
                                     const std::string& file, Console* console);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_SAVE_TRACE_H_
