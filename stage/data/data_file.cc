#include "stage/data/data_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

absl::Status SystemError(const std::string& where, int error) {
  const std::string text = absl::StrCat(where, ": ", std::generic_category().message(error),
                                        "; give a path that every stage's machine can read");
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(text);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(text);
  // A link in a circle, a socket.
  if (error == ELOOP || error == ENXIO)
    return absl::InvalidArgumentError(where + ": not a file; give the path of a file");
  return absl::UnavailableError(text);
}

int64_t ChangedNanos(const struct stat& information) {
  return int64_t{information.st_mtim.tv_sec} * 1'000'000'000 + information.st_mtim.tv_nsec;
}

}  // namespace

OpenedFile::OpenedFile(std::string field, std::string path, int descriptor)
    : field_(std::move(field)), path_(std::move(path)), descriptor_(descriptor) {}

OpenedFile::~OpenedFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string OpenedFile::Where() const {
  return absl::StrCat(field_, " = \"", ShownName(path_), "\"");
}

absl::Status OpenedFile::Failed(int error) const { return SystemError(Where(), error); }

absl::StatusOr<std::unique_ptr<OpenedFile>> OpenedFile::Open(const std::string& field,
                                                             const std::string& path) {
  // A pipe would block.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const int error = errno;
  std::unique_ptr<OpenedFile> file(new OpenedFile(field, path, descriptor));
  if (descriptor < 0) return file->Failed(error);
  struct stat information;
  if (fstat(descriptor, &information) != 0) return file->Failed(errno);
  if (!S_ISREG(information.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(file->Where(), ": not a file; give the path of a file"));
  }
  file->size_ = information.st_size;
  file->changed_nanos_ = ChangedNanos(information);
  return file;
}

absl::StatusOr<std::string> OpenedFile::RealPath() const {
  std::string path(PATH_MAX, '\0');
  const std::string link = absl::StrCat("/proc/self/fd/", descriptor_);
  const ssize_t length = readlink(link.c_str(), path.data(), path.size());
  if (length < 0) return Failed(errno);
  path.resize(static_cast<size_t>(length));
  return path;
}

absl::Status OpenedFile::ReadAt(int64_t offset, std::span<uint8_t> into) const {
  size_t filled = 0;
  while (filled < into.size()) {
    const ssize_t got = pread(descriptor_, into.data() + filled, into.size() - filled,
                              offset + static_cast<int64_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed(errno);
    if (got == 0) return absl::DataLossError(absl::StrCat(Where(), ": became shorter"));
    filled += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::Status OpenedFile::CheckUnchanged() const {
  struct stat information;
  if (fstat(descriptor_, &information) != 0) return Failed(errno);
  if (information.st_size == size_ && ChangedNanos(information) == changed_nanos_) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      Where(), ": was written to while the job reads it; put what is new into another file"));
}

absl::StatusOr<size_t> OpenedFile::Read(std::span<uint8_t> into) {
  const size_t wanted = std::min(into.size(), static_cast<size_t>(left()));
  size_t filled = 0;
  while (filled < wanted) {
    const ssize_t got =
        read(descriptor_, into.data() + filled, std::min(wanted - filled, kProgressPieceBytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed(errno);
    if (got == 0) {
      return absl::DataLossError(absl::StrCat(Where(), ": became shorter while being read"));
    }
    filled += static_cast<size_t>(got);
    TickProgress();
  }
  read_ += static_cast<int64_t>(filled);
  return filled;
}

}  // namespace stagecoach
