#include "services/coordinator/data/part_sweep.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/names.h"
#include "services/coordinator/store/object_names.h"

namespace stagecoach {
namespace {

double Seconds(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Its bytes; 0 if it stays.
int64_t Unlink(const std::string& path, const struct stat& information) {
  return unlink(path.c_str()) == 0 ? information.st_size : 0;
}

int64_t SweepOwner(const std::string& folder, double unchanged_since_seconds) {
  const absl::StatusOr<std::vector<std::string>> names = PosixFileSystem()->List(folder);
  if (!names.ok()) return 0;
  int64_t freed = 0;
  for (const std::string& name : *names) {
    const std::string path = JoinPath(folder, name);
    struct stat information;
    if (lstat(path.c_str(), &information) != 0 || !S_ISREG(information.st_mode)) continue;
    // Writing changes both times, and taking a name away the second.
    const double changed = std::max(Seconds(information.st_mtim), Seconds(information.st_ctim));
    if (information.st_nlink == 1 && changed < unchanged_since_seconds) {
      freed += Unlink(path, information);
    }
  }
  return freed;
}

}  // namespace

int64_t FreePartFiles(const std::string& folder, const std::vector<std::string>& digests) {
  int64_t freed = 0;
  for (const std::string& digest : digests) {
    const std::string path = JoinPath(folder, digest);
    struct stat information;
    if (lstat(path.c_str(), &information) != 0 || !S_ISREG(information.st_mode)) continue;
    if (information.st_nlink == 1) freed += Unlink(path, information);
  }
  return freed;
}

int64_t SweepPartFiles(const std::string& parts, double unchanged_since_seconds) {
  const absl::StatusOr<std::vector<std::string>> owners = PosixFileSystem()->List(parts);
  if (!owners.ok()) return 0;
  int64_t freed = 0;
  for (const std::string& owner : *owners) {
    freed += SweepOwner(JoinPath(parts, owner), unchanged_since_seconds);
  }
  return freed;
}

void TouchPartFile(const std::string& path) {
  utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);  // a failure costs an upload
}

bool AreTwoFiles(const std::string& path, const std::string& other) {
  struct stat a, b;
  if (lstat(path.c_str(), &a) != 0 || lstat(other.c_str(), &b) != 0) return false;
  return a.st_dev != b.st_dev || a.st_ino != b.st_ino;
}

int64_t UploadedPartBytes(const std::string& path) {
  struct stat information;
  return lstat(absl::StrCat(path, kPartSuffix).c_str(), &information) == 0 ? information.st_size
                                                                           : 0;
}

}  // namespace stagecoach
