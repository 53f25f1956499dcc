// Shared by submit, watch, wait and local: submitting until the coordinator has the job, following
// it to its end, and reporting it.
// Threads:   the main thread.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_FOLLOW_COMMAND_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_FOLLOW_COMMAND_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "services/cli/commands/commands.h"
#include "services/cli/spec/spec_reader.h"

namespace stagecoach {

// Follows and shows the job from the record after `after` on; returns the exit code. `quiet`: shows
// only the end. A job that writes texts is shown from its beginning. If it succeeded and not all of
// its texts were shown, that is a failure.
int FollowAndReport(JobClient& client, const v1::Job& job, bool quiet, CommandContext& context,
                    uint64_t after = 0);

// For a job that ended before the command: shows its result and the next commands, and its history
// only if it wrote texts: they are its result. Returns the exit code. `anew`: how to run it anew;
// `resume`: the command that goes on.
int ReportEnded(JobClient& client, const v1::Job& job, const std::string& anew,
                const std::string& resume, CommandContext& context);

// ALREADY_EXISTS: the fields that differ, and then `remedy`.
absl::Status ExistsWithAnotherSpec(const v1::Job& job, const v1::JobSpec& spec,
                                   const std::string& remedy);
std::string RemedyOfAnotherSpec(const std::string& id);

// A coordinator that restarts is back within seconds; the user should soon hear of one that is not
// there.
inline constexpr double kSubmitPatienceSeconds = 5;

// Submits under an id that repeats harmlessly, again and again for `patience_seconds` while there
// is no coordinator. ALREADY_EXISTS names the fields that differ.
absl::StatusOr<v1::Job> SubmitPatiently(JobClient& client, const std::string& id,
                                        const v1::JobSpec& spec, double patience_seconds,
                                        StopSignal* stop);

// "gpt-text-1f2e3d4c".
std::string MakeJobId(const std::string& name);

// Reads and validates the file and all data that this machine can see.
absl::StatusOr<ValidSpecFile> ReadValidSpec(const std::string& file);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_FOLLOW_COMMAND_H_
