#include "services/records/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace stagecoach {

absl::StatusOr<AppendFile> AppendFile::Open(const std::string& path, Mode mode) {
  const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | (mode == Mode::kNew ? O_EXCL : 0);
  const int descriptor = open(path.c_str(), flags, 0600);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, path);
  return AppendFile(path, descriptor);
}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::Status AppendFile::Append(const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(descriptor_, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return absl::ErrnoToStatus(errno, path_);
    done += static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
