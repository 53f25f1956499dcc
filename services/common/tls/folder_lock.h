// FolderLock: one command at a time in a folder, by flock on the folder itself. It leaves no file
// behind, and the kernel drops it with the process. It binds only those that take it.
// Ownership: holds the lock for its life.
// Threads:   Take from any thread. Two locks of one process exclude each other too.
// Errors:    FAILED_PRECONDITION naming the folder if another command holds it for longer than
//            `patience`. PERMISSION_DENIED and UNAVAILABLE name the folder and the system's error.
#ifndef STAGECOACH_SERVICES_COMMON_TLS_FOLDER_LOCK_H_
#define STAGECOACH_SERVICES_COMMON_TLS_FOLDER_LOCK_H_

#include <chrono>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/files/file_handle.h"

namespace stagecoach {

class FolderLock {
 public:
  static constexpr std::chrono::milliseconds kPatience{20000};

  // The folder exists. Waits for the lock.
  static absl::StatusOr<FolderLock> Take(const std::string& folder,
                                         std::chrono::milliseconds patience = kPatience);

 private:
  explicit FolderLock(FileHandle folder) : folder_(std::move(folder)) {}

  FileHandle folder_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_TLS_FOLDER_LOCK_H_
