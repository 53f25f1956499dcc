#include "coordinator/journal/state_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace stagecoach {

absl::StatusOr<std::unique_ptr<StateLock>> StateLock::Take(const std::string& folder) {
  const std::string path = folder + "/lock";
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    return absl::UnavailableError(absl::StrCat(path, ": ", strerror(errno)));
  }
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
    return std::unique_ptr<StateLock>(new StateLock(path, descriptor));
  }
  const int error = errno;
  close(descriptor);
  if (error == EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat("another coordinator uses the state folder ", folder,
                     "; stop it, or give this one another folder"));
  }
  return absl::UnavailableError(absl::StrCat(path, ": flock: ", strerror(error)));
}

StateLock::~StateLock() { close(descriptor_); }

absl::Status StateLock::Check() const {
  struct stat ours {};
  struct stat theirs {};
  const bool known = fstat(descriptor_, &ours) == 0 && stat(path_.c_str(), &theirs) == 0;
  if (!known && errno != ENOENT && errno != ENOTDIR) {
    return absl::UnavailableError(absl::StrCat(path_, ": ", strerror(errno)));
  }
  if (known && ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      path_, " was ", known ? "replaced" : "removed",
      "; this coordinator no longer owns its state folder: another one may have started on it"));
}

}  // namespace stagecoach
