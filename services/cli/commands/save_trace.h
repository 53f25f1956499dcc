// SaveTrace: asks for a job's trace and writes it as Chrome JSON.
// Threads: the command's.
// Errors:  the coordinator's; UNAVAILABLE: no stage answered; FAILED_PRECONDITION: no stage holds a
//          span of the job, or the file cannot be written.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_SAVE_TRACE_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_SAVE_TRACE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "services/cli/client/job_client.h"
#include "services/cli/output/console.h"

namespace stagecoach {

// Notes what was written and which stages are missing in it. file "-": standard output.
absl::Status SaveTrace(JobClient& client, const std::string& job, uint32_t steps,
                       const std::string& file, Console* console);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_SAVE_TRACE_H_
