// RunFolder: the state folders that `stagecoach local` leaves behind, as a user names them.
// Errors:    NOT_FOUND: no run is kept there; says which folders below have one.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_LOCAL_RUN_FOLDER_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_LOCAL_RUN_FOLDER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stagecoach {

// The folder as an absolute path, if a coordinator has kept its journal there.
absl::StatusOr<std::string> FindRunFolder(const std::string& given);
// Those of the folders below that one, by name; the newest come last, as `stagecoach local` names
// them by their time.
std::vector<std::string> RunsBelow(const std::string& given);
// Somebody runs a cluster in it: who, else nothing.
std::optional<std::string> HolderOf(const std::string& run);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_LOCAL_RUN_FOLDER_H_
