// GoOn: what `resume` and `local` do with a job that the coordinator knows already, by calls on a
// JobClient alone.
//
// The same job goes on where it was only interrupted (held): its number of stages may be another,
// for that changes no bit of its result, and its history has no gap. A job that ended stays as it
// ended, and another number of steps is another result: both make a new job, whose spec says from
// which checkpoint of which job it goes on.
// Threads:   the main thread.
// Errors:    FAILED_PRECONDITION: nothing to go on with, with what to do instead. ALREADY_EXISTS: the
//            fields that differ. Else the client's.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_GO_ON_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_GO_ON_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "services/cli/commands/commands.h"

namespace stagecoach {

struct StartedJob {
  v1::Job job;
  uint64_t after = 0;  // the last record of what was before: not to be shown again
};

bool IsHeld(const v1::Job& job);

// "job a goes on from the checkpoint of step 20, with 3 stages instead of 2", and all of that.
std::string GoesOnText(const v1::Job& before, int64_t stages);

// `job` as it stands; stages 0 and steps 0: as it says; id: of a new job, empty: a free one. The job
// that runs now, with a note that says which.
absl::StatusOr<StartedJob> GoOn(JobClient& client, const v1::Job& job, int64_t stages,
                                int64_t steps, const std::string& id, CommandContext& context);

// The job `id` with this spec: a new one; the one that was held and goes on, also where only the
// number of stages is another; or one that ended with this spec, as it is.
absl::StatusOr<StartedJob> StartOrGoOn(JobClient& client, const std::string& id,
                                       const v1::JobSpec& spec, double patience_seconds,
                                       const std::string& remedy, CommandContext& context);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_GO_ON_H_
