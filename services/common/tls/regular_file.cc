#include "services/common/tls/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/files/file_handle.h"

namespace stagecoach {
namespace {

absl::Status ReadError() {
  const int error = errno;
  const std::string text = absl::StrCat("cannot be read: ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(text);
  const bool forbidden = error == EACCES || error == EPERM;
  return forbidden ? absl::PermissionDeniedError(text) : absl::UnavailableError(text);
}

}  // namespace

absl::StatusOr<std::string> ReadRegularFile(const std::string& path) {
  // O_NONBLOCK: to open a pipe without a writer would wait for one.
  const FileHandle file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!file.open()) {
    const bool other = errno == ENXIO;  // a socket
    return other ? absl::FailedPreconditionError("is no regular file") : ReadError();
  }
  if (fstat(file.get(), &info) != 0) return ReadError();
  if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError("is no regular file");
  std::string text;
  char buffer[8192];
  for (;;) {
    const ssize_t got = read(file.get(), buffer, sizeof(buffer));
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ReadError();
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > kMostPemBytes) {
      return absl::FailedPreconditionError(
          absl::StrCat("is larger than ", kMostPemBytes, " bytes, the limit of a PEM file"));
    }
  }
}

}  // namespace stagecoach
