#include "checkpoint/files/file_system.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/numbers/machine_random.h"

namespace stagecoach {

absl::Status FileSystem::Link(const std::string& from, const std::string& to) {
  return absl::UnimplementedError(absl::StrCat("link ", from, " to ", to, ": has no hard links"));
}

std::string FileSystem::Nonce() { return absl::StrFormat("%016x", MachineRandom()); }

}  // namespace stagecoach
