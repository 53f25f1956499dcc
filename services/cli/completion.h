// Completion: scripts for bash, zsh and fish made from the command tree, so that they cannot fall
// behind it.
// Threads: pure function.
#ifndef STAGECOACH_SERVICES_CLI_COMPLETION_H_
#define STAGECOACH_SERVICES_CLI_COMPLETION_H_

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace stagecoach {

// shell: bash, zsh or fish (CHECKed). Completes commands, options and the values of options that
// have a list of them; files everywhere else.
std::string CompletionScript(const CLI::App& app, const std::string& shell);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMPLETION_H_
