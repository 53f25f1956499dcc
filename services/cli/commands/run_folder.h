// RunFolder: the state folders that `stagecoach local` leaves behind, as a user names them.
// Errors:    NOT_FOUND: no run is kept there; says which folders below have one.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_RUN_FOLDER_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_RUN_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"

namespace stagecoach {

// The folder as an absolute path, if a coordinator has kept its journal there.
absl::StatusOr<std::string> FindRunFolder(const std::string& given);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_RUN_FOLDER_H_
