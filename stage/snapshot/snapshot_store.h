// SnapshotStore: the shards of snapshots that a stage holds in memory: of its own cell, and copies
// for a neighbour. Two steps of each at most: the newest that is whole everywhere, and one that is
// on its way to be.
// Ownership: owns the bytes; readers share them.
// Threads:   thread-safe.
// Errors:    Put: ABORTED for a cell that is not the neighbour of the one loaded here;
//            INVALID_ARGUMENT for a shard that is not that neighbour's by name or size;
//            FAILED_PRECONDITION for a part that is not the next one; RESOURCE_EXHAUSTED where
//            memory is short. Read: NOT_FOUND, OUT_OF_RANGE.
#ifndef STAGECOACH_STAGE_SNAPSHOT_SNAPSHOT_STORE_H_
#define STAGECOACH_STAGE_SNAPSHOT_SNAPSHOT_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "checkpoint/memory_shard.h"
#include "checkpoint/snapshot.h"
#include "stage/snapshot/snapshot_peers.h"

namespace stagecoach {

// A shard that is complete.
struct StoredShard {
  HeldShard held;
  std::span<const std::byte> file;
  std::shared_ptr<const void> keeps;  // owns the bytes
  bool of_load = false;               // the load used it; else it was taken since
};

class SnapshotStore {
 public:
  // free_bytes: what the machine could give now (available_memory.h).
  explicit SnapshotStore(std::function<int64_t()> free_bytes);

  // Whose copies are taken.
  struct Neighbour {
    Fence cell;        // of the load: job, term, generation
    std::string file;  // its shard's name
    int64_t most_bytes = 0;
  };
  // What a load uses.
  struct LoadedFrom {
    uint64_t step = 0;
    std::set<std::string> files;
  };
  // A cell is being loaded. Drops all shards but those of the same job that the load uses. Takes no
  // copies until TakeCopies.
  void Begin(const std::string& job, const std::string& key, const std::optional<LoadedFrom>& from);
  void TakeCopies(Neighbour neighbour);
  void Clear(const std::string& job);  // drops all if it holds this job's shards; the cell goes on
  void Clear();

  // Before a shard of the own cell is taken. Drops the own shards but those of step `kept`: the
  // ones that the load used if of_load, else the ones taken since.
  void MakeRoom(uint64_t kept, bool of_load);
  void Add(const std::string& key, StoredShard shard);
  // Adds a part of the neighbour's shard; true when the shard is complete.
  absl::StatusOr<bool> Put(const SnapshotPart& part);

  std::vector<HeldShard> List(const std::string& job, const std::string& key) const;
  std::optional<StoredShard> Find(const std::string& job, const std::string& key, uint64_t step,
                                  const std::string& file) const;
  absl::Status Read(const SnapshotRange& range, std::span<std::byte> target) const;
  int64_t bytes() const;

 private:
  // Memory that parts are written into.
  struct Buffer {
    std::shared_ptr<std::byte[]> bytes;
    int64_t size = 0;
  };
  struct Copy {
    StoredShard shard;
    Buffer buffer;
  };
  struct Arriving {
    HeldShard held;
    Buffer buffer;
    bool fresh = false;  // its memory has not been written to yet
    int64_t received = 0;
  };
  absl::Status CheckPartLocked(const SnapshotPart& part) const;
  absl::Status BeginCopyLocked(const SnapshotPart& part, int64_t free_bytes,
                               std::vector<Copy>* dropped);

  const std::function<int64_t()> free_bytes_;
  mutable std::mutex mutex_;  // guards what follows
  std::string job_, key_;
  std::optional<Neighbour> neighbour_;
  std::vector<StoredShard> own_;
  std::vector<Copy> copies_;
  std::optional<Arriving> arriving_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_SNAPSHOT_SNAPSHOT_STORE_H_
