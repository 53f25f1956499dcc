// Confirm: asks the user before something goes for good.
// Threads: the main thread.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_CONFIRM_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_CONFIRM_H_

#include <string>

#include "absl/status/statusor.h"
#include "services/cli/commands/commands.h"

namespace stagecoach {

// INVALID_ARGUMENT with `what` and `remedy`: there is no terminal to ask at.
absl::Status CheckCanAsk(const std::string& what, const std::string& remedy,
                         const CommandContext& context);

// One line from the terminal, which gives whole lines. A stop is seen meanwhile.
absl::StatusOr<bool> Confirmed(const std::string& question, CommandContext& context);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_CONFIRM_H_
