// CommandMistake: describes a mistake in a command line, and names the word that was meant. CLI11
// only says "A subcommand is required" for `stagecoach train job.yaml`.
// Threads: pure functions.
#ifndef STAGECOACH_SERVICES_CLI_COMMAND_MISTAKE_H_
#define STAGECOACH_SERVICES_CLI_COMMAND_MISTAKE_H_

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace stagecoach {

// A better text for an error text `why` with which `app` has refused a command line. An unknown
// command or option is named with the nearest known one. Any other mistake is `why`.
std::string DescribeMistake(const CLI::App& app, const std::string& why);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMAND_MISTAKE_H_
