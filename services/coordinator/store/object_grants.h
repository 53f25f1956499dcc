// ObjectGrants: texts that open one folder of the store to whoever holds one, for reading or for
// writing, until they expire. As a presigned URL of S3, a grant is signed and kept nowhere. The
// coordinator sends it with the command or the answer that names the folder. So a stage opens the
// folders of its jobs and no others, with or without certificates.
// Ownership: borrows the clock.
// Threads:   thread-safe.
// Errors:    PERMISSION_DENIED with the folder and what is wrong with the grant.
#ifndef STAGECOACH_SERVICES_COORDINATOR_STORE_OBJECT_GRANTS_H_
#define STAGECOACH_SERVICES_COORDINATOR_STORE_OBJECT_GRANTS_H_

#include <string>

#include "absl/status/status.h"
#include "base/threads/clock.h"

namespace stagecoach {

class ObjectGrants {
 public:
  enum class Use { kRead, kWrite };
  // A load or a write of shards takes less; what takes longer fails, and its next try has a new
  // grant.
  static constexpr double kSeconds = 6 * 3600;

  // Signs with a key of this process: a restarted coordinator sends its commands anew. Times are of
  // the clock that never jumps, for only this process reads them.
  explicit ObjectGrants(const Clock* clock = SystemClock::Get());

  std::string Make(const std::string& folder, Use use) const;
  // A grant for writing reads as well.
  absl::Status Check(const std::string& grant, const std::string& folder, Use use) const;
  // How long a grant that Check took is good for yet; 0 of any other text.
  int64_t SecondsLeft(const std::string& grant) const;

 private:
  std::string Signature(const std::string& folder, const std::string& head) const;

  const Clock* const clock_;
  const std::string key_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_STORE_OBJECT_GRANTS_H_
