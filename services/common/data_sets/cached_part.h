// CachedPart: a part of a data set, fetched block by block as readers ask. A block is checked at its
// first use in this process, and fetched again if it is damaged. A reader that goes on where the one
// before ended has up to 4 MiB more fetched with its block.
// Ownership: owns its file; borrows room and arrivals.
// Threads:   thread-safe. Two readers of one block fetch it once.
// Errors:    as Fetch. DATA_LOSS: the whole part is not what its name says; then it is dropped.
//            RESOURCE_EXHAUSTED: the disk is full, and nothing could be evicted.
#ifndef STAGECOACH_SERVICES_COMMON_DATA_SETS_CACHED_PART_H_
#define STAGECOACH_SERVICES_COMMON_DATA_SETS_CACHED_PART_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/threads/progress.h"
#include "services/common/data_sets/cache_room.h"
#include "services/common/data_sets/part_file.h"

namespace stagecoach {

class CachedPart {
 public:
  // Fills the span with the part's bytes from the offset on.
  using Fetch = absl::FunctionRef<absl::Status(int64_t offset, std::span<std::byte> into)>;

  // arrivals: counts while bytes arrive for a reader of any thread.
  CachedPart(std::unique_ptr<PartFile> file, CacheRoom* room, const ProgressCounter* arrivals)
      : file_(std::move(file)),
        room_(*room),
        arrivals_(*arrivals),
        states_(static_cast<size_t>(file_->blocks())) {}

  const PartFile& file() const { return *file_; }
  // Waits until these bytes can be read.
  absl::Status Need(int64_t offset, int64_t bytes, Fetch fetch);

  // For reading ahead. The bytes of the next range that is not here, 4 MiB at most; 0: all is here.
  int64_t NextMissing();
  // Fetches it.
  absl::Status FetchMissing(Fetch fetch);
  // Once all of it is here: compares its SHA-256, if no process has; of a linked part nobody knows it.
  // Gives up once it is not wanted.
  absl::Status CheckWhole(Fetch fetch, absl::FunctionRef<bool()> wanted);

 private:
  enum class State : uint8_t { kUnknown, kBusy, kGood };
  struct Run {
    int64_t first = 0, end = 0;  // blocks
  };
  absl::Status WaitWhileBusy(int64_t block, std::unique_lock<std::mutex>& lock);
  // Blocks from `first` on that this thread looks after. `all_to`: the last that a reader needs.
  Run Claim(int64_t first, int64_t all_to, bool ahead);
  void Release(const Run& run, bool good);
  absl::Status MakeGood(const Run& run, Fetch fetch);
  absl::Status FetchBlocks(const Run& run, Fetch fetch);
  absl::Status Store(int64_t first, std::span<const std::byte> bytes);
  void TouchNowAndThen();

  const std::unique_ptr<PartFile> file_;
  CacheRoom& room_;
  const ProgressCounter& arrivals_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<State> states_;  // of the blocks
  int64_t next_ = 0;           // the block behind the last one that was needed
  int64_t missing_ = 0;        // no block before it is missing
  int64_t touched_nanos_ = 0;
  absl::Status lost_;  // the part is not what its name says
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_DATA_SETS_CACHED_PART_H_
