// Completion: a bash completion script made from the command tree, so that it cannot fall behind
// it.
#ifndef STAGECOACH_SERVICES_CLI_COMPLETION_H_
#define STAGECOACH_SERVICES_CLI_COMPLETION_H_

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace stagecoach {

std::string BashCompletion(const CLI::App& app);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMPLETION_H_
