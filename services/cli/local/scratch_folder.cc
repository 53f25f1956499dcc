#include "services/cli/local/scratch_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace stagecoach {

absl::StatusOr<std::unique_ptr<ScratchFolder>> ScratchFolder::Make(const std::string& purpose) {
  std::string path =
      (std::filesystem::temp_directory_path() / absl::StrCat("stagecoach-", purpose, "-XXXXXX"))
          .string();
  if (mkdtemp(path.data()) == nullptr) return absl::ErrnoToStatus(errno, path);
  return std::unique_ptr<ScratchFolder>(new ScratchFolder(std::move(path)));
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;  // what is left is in a folder for such
  if (!kept_) std::filesystem::remove_all(path_, error);
}

}  // namespace stagecoach
