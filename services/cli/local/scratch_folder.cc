#include "services/cli/local/scratch_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace stagecoach {

absl::StatusOr<std::unique_ptr<ScratchFolder>> ScratchFolder::Make(const std::string& purpose) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("TMPDIR = \"", folder.string(), "\": ", error.message(), "; name a folder"));
  }
  std::string path = (folder / absl::StrCat("stagecoach-", purpose, "-XXXXXX")).string();
  if (mkdtemp(path.data()) == nullptr) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("a folder below ", folder.string(), " (set TMPDIR to another)"));
  }
  return std::unique_ptr<ScratchFolder>(new ScratchFolder(std::move(path)));
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;  // what is left is in a folder for such
  if (!kept_) std::filesystem::remove_all(path_, error);
}

}  // namespace stagecoach
