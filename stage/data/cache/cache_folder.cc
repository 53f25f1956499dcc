#include "stage/data/cache/cache_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

// In a folder that every user writes to, the name may be taken by somebody else.
absl::Status CheckIsOurs(const std::string& folder) {
  struct stat info;
  if (lstat(folder.c_str(), &info) != 0) return absl::ErrnoToStatus(errno, "it cannot be read");
  const bool ours = S_ISDIR(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 022) == 0;
  return ours
             ? absl::OkStatus()
             : absl::PermissionDeniedError("it belongs to another user, or others may write to it");
}

}  // namespace

absl::Status CacheError(const std::string& folder, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("--cache-dir = \"", ShownName(folder), "\": ", status.message(),
                                   "; give the stage a folder of its own with room for what it keeps"));
}

absl::StatusOr<std::string> CacheFolder(FileSystem& files, const std::string& given) {
  std::string folder = given;
  if (given.empty()) {
    std::error_code error;
    const std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
    if (error) return CacheError("", absl::UnavailableError(error.message()));
    folder = (temporary / absl::StrCat("stagecoach-cache-", geteuid())).string();
  }
  absl::Status made = files.MakeFolders(folder);
  // A file in its place will be there the next time as well.
  if (absl::IsAlreadyExists(made)) made = absl::FailedPreconditionError(made.message());
  RETURN_IF_ERROR(CacheError(folder, made));
  if (given.empty()) RETURN_IF_ERROR(CacheError(folder, CheckIsOurs(folder)));
  return folder;
}

}  // namespace stagecoach
