#include "checkpoint/files/file_system.h"

#include "absl/strings/str_format.h"
#include "base/numbers/machine_random.h"

namespace stagecoach {

std::string FileSystem::Nonce() { return absl::StrFormat("%016x", MachineRandom()); }

}  // namespace stagecoach
