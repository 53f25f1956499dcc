// StateLock: one coordinator per state folder, by flock on <folder>/lock. The kernel drops the lock
// with the process, so there is nothing to clean up after a crash.
// Ownership: holds the lock for its life.
// Threads:   Check from any thread.
// Errors:    FAILED_PRECONDITION if another process holds it, naming the folder; UNAVAILABLE
//            otherwise.
#ifndef STAGECOACH_COORDINATOR_JOURNAL_STATE_LOCK_H_
#define STAGECOACH_COORDINATOR_JOURNAL_STATE_LOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace stagecoach {

class StateLock {
 public:
  static absl::StatusOr<std::unique_ptr<StateLock>> Take(const std::string& folder);
  ~StateLock();
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;
  // Whether others would lock the same file as we. FAILED_PRECONDITION: no; UNAVAILABLE: unknown.
  absl::Status Check() const;

 private:
  StateLock(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  const std::string path_;
  const int descriptor_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOURNAL_STATE_LOCK_H_
