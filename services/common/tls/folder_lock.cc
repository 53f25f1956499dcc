#include "services/common/tls/folder_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

using std::chrono::steady_clock;

constexpr int kBetweenTriesMilliseconds = 10;

absl::Status FolderError(const std::string& folder, const char* step) {
  const std::string text = absl::StrCat(ShownName(folder), ": ", step, ": ", std::strerror(errno));
  const bool forbidden = errno == EACCES || errno == EPERM;
  return forbidden ? absl::PermissionDeniedError(text) : absl::UnavailableError(text);
}

// Whether the path still leads to the open folder: another command may have removed it, and a third
// may lock a new one of that name.
bool IsStill(int folder, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return fstat(folder, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

absl::StatusOr<FolderLock> FolderLock::Take(const std::string& folder,
                                            std::chrono::milliseconds patience) {
  const steady_clock::time_point deadline = steady_clock::now() + patience;
  for (;;) {
    FileHandle opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened.open()) return FolderError(folder, "open the folder");
    if (flock(opened.get(), LOCK_EX | LOCK_NB) == 0) {
      if (IsStill(opened.get(), folder)) return FolderLock(std::move(opened));
    } else if (errno != EWOULDBLOCK && errno != EINTR) {
      return FolderError(folder, "lock the folder");
    }
    if (steady_clock::now() >= deadline) break;
    // flock has no timeout, and nothing tells of a lock that another process drops.
    poll(nullptr, 0, kBetweenTriesMilliseconds);
  }
  return absl::FailedPreconditionError(
      absl::StrCat(ShownName(folder), ": another command has used this folder for ",
                   std::chrono::duration_cast<std::chrono::seconds>(patience).count(),
                   " seconds; wait for its end, or stop it, and repeat this one"));
}

}  // namespace stagecoach
