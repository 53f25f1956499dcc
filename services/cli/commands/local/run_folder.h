// RunFolder: the state folders of `stagecoach local`, as a user names them.
// Errors:    NOT_FOUND: no run is kept there; says which folders below have one.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_LOCAL_RUN_FOLDER_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_LOCAL_RUN_FOLDER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stagecoach {

// The folder as an absolute path, if it has a coordinator's journal.
absl::StatusOr<std::string> FindRunFolder(const std::string& given);
// Run folders below that one, by name. The newest come last, because `stagecoach local` names them
// by time.
std::vector<std::string> RunsBelow(const std::string& given);
// The command that runs a cluster in it; nullopt: none does.
std::optional<std::string> HolderOf(const std::string& run);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_LOCAL_RUN_FOLDER_H_
