// PartTable: the parts that this process has open. One that no reader has any more stays open for
// the next one, so that its blocks are not checked again; of those, the ones longest unused go.
// Ownership: owns the room; readers share the parts.
// Threads:   thread-safe.
// Errors:    as PartFile::Open.
#ifndef STAGECOACH_SERVICES_COMMON_DATA_SETS_PART_TABLE_H_
#define STAGECOACH_SERVICES_COMMON_DATA_SETS_PART_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "base/threads/progress.h"
#include "services/common/data_sets/cache_room.h"
#include "services/common/data_sets/cached_part.h"

namespace stagecoach {

class PartTable {
 public:
  static constexpr size_t kMostIdle = 256;  // each takes two descriptors

  // limit: as of CacheRoom. arrivals: as of CachedPart.
  PartTable(const std::string& folder, int64_t limit, const ProgressCounter* arrivals)
      : folder_(folder),
        arrivals_(*arrivals),
        room_({.folder = folder, .limit = limit, .close_idle = [this](const std::string& name) {
                 CloseIdle(name);
               }}) {}

  absl::StatusOr<std::shared_ptr<CachedPart>> Open(const PartKey& key);
  void CloseIdle();
  // A part that was dropped: whoever opens it again gets a new one.
  void Forget(const std::shared_ptr<CachedPart>& part);
  CacheRoom& room() { return room_; }

 private:
  struct Slot {
    std::shared_ptr<CachedPart> part;
    uint64_t used = 0;  // number of the last opening
  };
  void CloseIdle(const std::string& name);
  void CloseOldestIdleLocked();

  const std::string folder_;
  const ProgressCounter& arrivals_;
  CacheRoom room_;
  std::mutex mutex_;  // guards what follows; room_ comes before it
  std::map<std::string, Slot> parts_;
  uint64_t openings_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_DATA_SETS_PART_TABLE_H_
