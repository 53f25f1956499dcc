// Completion: scripts for bash, zsh and fish, and the client's answers to the scripts. The command
// tree is the only list of commands and options.
// Threads: the main thread.
#ifndef STAGECOACH_SERVICES_CLI_COMPLETION_H_
#define STAGECOACH_SERVICES_CLI_COMPLETION_H_

#include <span>
#include <string>

#include "services/cli/commands/commands.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stagecoach {

// shell: bash, zsh or fish (CHECKed).
std::string CompletionScript(const std::string& shell);

// Prints the possible words for the last word of a command line, one a line. A tab and a
// description may follow. FILE, DIR and PATH stand for files, folders and both, which the shell
// finds itself.
//
// A value is completed by the type name of its option, which help shows too. Types are JOB (an id,
// from the coordinator), DATASET (of its data sets), CLUSTER (of the profile), DEVICE (of this machine), FILE, DIR, PATH and a list "{a,b}". An option
// may have several of them, with "|" between. All other values are completed to nothing.
// line: "stagecoach" and the words behind it.
int RunComplete(const CLI::App& app, std::span<const std::string> line, CommandContext& context);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMPLETION_H_
