// CommandLine: reads the command line of `stagecoach` and runs its command.
// Threads: the main thread.
#ifndef STAGECOACH_SERVICES_CLI_COMMAND_LINE_H_
#define STAGECOACH_SERVICES_CLI_COMMAND_LINE_H_

#include "services/cli/client/stop_signal.h"
#include "services/cli/output/console.h"

namespace stagecoach {

// The exit code. Errors of the command line itself give 2.
int RunCommandLine(int argc, const char* const* argv, Console* console, StopSignal* stop);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMAND_LINE_H_
