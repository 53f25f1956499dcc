#include "services/coordinator/watch/export_sweep.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "checkpoint/files/errno_code.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/names.h"
#include "coordinator/loop/job_files.h"

namespace stagecoach {

absl::Status ExportSweep::Touch(const std::string& path) {
  if (utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) == 0) {
    return absl::OkStatus();
  }
  return absl::Status(CodeOfErrno(errno), absl::StrCat("set the time of ", path, ": ",
                                                       std::generic_category().message(errno)));
}

void ExportSweep::Sweep(double now_seconds) {
  const std::unique_lock<std::mutex> hold(mutex_, std::try_to_lock);
  if (!hold.owns_lock()) return;  // an export is being written; the next sweep does it
  const absl::StatusOr<std::vector<std::string>> names = PosixFileSystem()->List(folder_);
  if (!names.ok()) return;  // there is no export yet, or the disk is away
  for (const std::string& name : *names) {
    if (!IsRequestedExport(name)) continue;
    const std::string path = JoinPath(folder_, name);
    struct stat information;
    if (lstat(path.c_str(), &information) != 0) continue;
    const double touched = static_cast<double>(information.st_mtim.tv_sec);
    if (now_seconds - touched <= kKeepSeconds) continue;
    const absl::Status removed = PosixFileSystem()->RemoveAll(path);
    if (removed.ok()) {
      spdlog::info("export {} is removed: nobody asked for it for a day", name);
    } else {
      spdlog::warn("export {} stays: {}", name, std::string(removed.message()));
    }
  }
}

}  // namespace stagecoach
