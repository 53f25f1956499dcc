// GoOn: continues a job that the coordinator knows already, for `resume` and `local`. It only makes
// calls on a JobClient.
//
// If a job was only interrupted (held), it goes on as the same job. Its number of stages may
// change, because that changes no bit of its result. Its history has no gap. A job that ended stays
// so, and another number of steps is another result. Both make a new job. Its spec names the
// checkpoint and the job from which it goes on.
// Threads:   the main thread.
// Errors:    FAILED_PRECONDITION: nothing to go on with, and the remedy. ALREADY_EXISTS: the fields
//            that differ. Else the client's.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_LOCAL_GO_ON_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_LOCAL_GO_ON_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "services/cli/commands/commands.h"

namespace stagecoach {

struct StartedJob {
  v1::Job job;
  uint64_t after = 0;  // last record before this run: not to be shown again
};

bool IsHeld(const v1::Job& job);

// "job a was interrupted at step 25 of 40 and goes on from the checkpoint of step 20, with ..."
std::string GoesOnText(const v1::Job& before, int64_t stages);

// `job` in its present state; stages 0 and steps 0: as it says; id: of a new job, empty: a free
// one. Returns the job that runs now, with a note that names it.
absl::StatusOr<StartedJob> GoOn(JobClient& client, const v1::Job& job, int64_t stages,
                                int64_t steps, const std::string& id, CommandContext& context);

// Returns the job `id` with this spec. If the coordinator does not know it, the job is a new one.
// If it was held, it goes on; the number of stages may differ. A job that ended with this spec is
// returned as it is.
absl::StatusOr<StartedJob> StartOrGoOn(JobClient& client, const std::string& id,
                                       const v1::JobSpec& spec, double patience_seconds,
                                       const std::string& remedy, CommandContext& context);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_LOCAL_GO_ON_H_
