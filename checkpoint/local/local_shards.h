// LocalShards: copies of the shards that stages of this machine wrote, on its own disk. A load reads
// them there, and the store's file only if a copy is missing or damaged.
//   <cache>/checkpoints/<job>/step-000000000050/<SHA-256 of the file>
//   <cache>/checkpoints/<job>/step-000000000050/.tmp-<nonce>    being written
// A copy is a cache. Its name is the digest that a committed manifest gives, and its reader compares
// every tensor with the manifest. So nothing is synced, and anybody may empty the folder.
// Ownership: borrows the file system.
// Threads:   thread-safe. Stages of a machine may share the folder: files appear by a rename.
// Errors:    none is passed on but Open's. A fault that stays is logged once.
// See:       docs/formats.md, "Local copies of shards".
#ifndef STAGECOACH_CHECKPOINT_LOCAL_LOCAL_SHARDS_H_
#define STAGECOACH_CHECKPOINT_LOCAL_LOCAL_SHARDS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/shard.h"

namespace stagecoach {

class LocalShards {
 public:
  struct Options {
    FileSystem* files = nullptr;
    // The cache; asked at each use, as somebody may have emptied it.
    std::function<absl::StatusOr<std::string>()> folder;
    int64_t keep = 1;  // newest steps of a job, beside the one that is being written; at least 1
    // Of the disk; it stays free. Jobs need it for their data.
    int64_t reserve_bytes = int64_t{1} << 30;
    // Since the last change of a folder's entries; nullopt: unknown. Empty: as the machine says.
    std::function<std::optional<double>(const std::string& folder)> idle_seconds;
  };
  // A copy that is being written. Without Keep, its file goes with it.
  class Copy {
   public:
    virtual ~Copy() = default;
    virtual void Append(std::span<const std::byte> bytes) = 0;
    virtual void Keep() = 0;  // all bytes were appended, and the store has them
  };

  explicit LocalShards(Options options);

  // Removes the job's copies of later steps, which training has left, and of all but the newest
  // `keep` before. Null: none can be made now.
  std::unique_ptr<Copy> Begin(const std::string& job, uint64_t step);

  // The copy of a shard that a committed manifest lists. NOT_FOUND: there is none. DATA_LOSS: it is
  // not such a file. The reader must compare each tensor with the manifest.
  absl::StatusOr<SafetensorsReader> Open(const std::string& job, uint64_t step,
                                         const ShardInfo& shard);
  // Removes a copy that could not be read or was damaged, and logs why.
  void Drop(const std::string& job, uint64_t step, const ShardInfo& shard, const absl::Status& why);

 private:
  class FileCopy;

  absl::StatusOr<std::string> Root() const;
  absl::StatusOr<std::unique_ptr<Copy>> BeginCopy(const std::string& job, uint64_t step);
  void Trim(const std::string& job_folder, uint64_t step);
  // Removes the copies of jobs that wrote none for so long.
  void Sweep(const std::string& root, const std::string& except_job, double most_idle_seconds);
  double IdleSeconds(const std::string& job_folder) const;
  absl::Status CheckRoom(const std::string& folder) const;
  void Report(const absl::Status& status);  // of a copy

  const Options options_;
  std::atomic<bool> failing_ = false;  // said already
};

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_LOCAL_LOCAL_SHARDS_H_
