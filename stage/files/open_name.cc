#include "stage/files/open_name.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "base/errors/check.h"

namespace stagecoach {
namespace {

constexpr int kMostTries = 16;

// The C library has no function for it.
int Openat2(int folder, const char* name, int flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, folder, name, &how, sizeof(how)));
}

}  // namespace

bool HasOpenat2() {
  // A filter of system calls may answer EPERM, and another time ENOSYS: it is asked for what nobody
  // refuses.
  static const bool has =
      FileHandle(Openat2(AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC)).open();
  return has;
}

FileHandle OpenName(const FileHandle& folder, const std::string& name, int flags, OpenCall call) {
  CHECK(!name.empty() && name != ".." && name.find('/') == std::string::npos) << name;
  flags |= O_CLOEXEC | O_NOFOLLOW;
  const bool best = call == OpenCall::kBest && HasOpenat2();
  int number = -1, again = 0;
  do {
    number = best ? Openat2(folder.get(), name.c_str(), flags)
                  : openat(folder.get(), name.c_str(), flags);
    // EAGAIN: something was renamed at the same time, and RESOLVE_BENEATH looks again then; or with
    // O_NONBLOCK, another program has a lease on the file, and keeps it for longer than anybody
    // should try.
  } while (number < 0 && (errno == EINTR || (best && errno == EAGAIN && ++again < kMostTries)));
  return FileHandle(number);
}

std::string LinkTarget(const FileHandle& folder, const std::string& name) {
  std::string target(PATH_MAX, '\0');
  const ssize_t length = readlinkat(folder.get(), name.c_str(), target.data(), target.size());
  target.resize(length < 0 ? 0 : static_cast<size_t>(length));
  return target;
}

}  // namespace stagecoach
