// Spawn: starts a program with its output in a file; RunProgram: waits for its answer. posix_spawn, not fork: it is safe in a process
// that has threads and gRPC.
// Errors: NOT_FOUND, PERMISSION_DENIED, ... with program and errno text.
#ifndef STAGECOACH_SERVICES_CLI_LOCAL_SPAWN_H_
#define STAGECOACH_SERVICES_CLI_LOCAL_SPAWN_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/client/stop_signal.h"

namespace stagecoach {

// The child gets its own process group, because the parent handles Ctrl-C on the terminal. It has
// default signal handling with nothing blocked, and no standard input. Its environment is this
// process's. A "NAME=value" of `environment` is added if NAME is not set.
absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& arguments, const std::string& log_file,
                            const std::vector<std::string>& environment);

// Runs a program to its end, or until `stop` is requested, which kills it. With `quiet` its standard
// error goes nowhere, else to this process's.
struct ProgramAnswer {
  int wait_status = 0;
  std::string output;  // standard output, 64 KiB of it at most
};
absl::StatusOr<ProgramAnswer> RunProgram(const std::vector<std::string>& arguments, bool quiet,
                                         StopSignal* stop);

// "exit code 3", "signal 9 (Killed)" of a wait status.
std::string DescribeEnd(int wait_status);

// Folder of the running program and its sister programs.
std::string ProgramFolder();

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_LOCAL_SPAWN_H_
