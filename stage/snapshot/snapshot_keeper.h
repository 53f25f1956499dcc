// SnapshotKeeper: takes snapshots of a stage's cell. At a step boundary the executor copies the
// tensors, and waits for nothing else. A thread of the keeper hashes the copy and sends it to the
// neighbour during the following steps.
// Ownership: owns the thread; borrows store and peers.
// Threads:   Begin, End, Take and Report: the executor's; the destructor, on any thread, waits for
//            a call under way.
// Errors:    only the snapshot fails: Report has the reason, and training goes on. The next
//            snapshot is tried.
#ifndef STAGECOACH_STAGE_SNAPSHOT_SNAPSHOT_KEEPER_H_
#define STAGECOACH_STAGE_SNAPSHOT_SNAPSHOT_KEEPER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/threads/clock.h"
#include "base/threads/task_thread.h"
#include "checkpoint/memory_shard.h"
#include "plan/control.h"
#include "stage/backends/backend.h"
#include "stage/snapshot/snapshot_peers.h"
#include "stage/snapshot/snapshot_store.h"
#include "stage/tensor/named_tensor.h"

namespace stagecoach {

class SnapshotKeeper {
 public:
  struct Parts {
    SnapshotStore* store = nullptr;
    SnapshotPeers* peers = nullptr;  // null: no snapshots are taken
    const Clock* clock = nullptr;
    std::function<int64_t()> free_bytes;
    int nice = 0;  // of the thread
    // Instead of a thread; must not run the function within the call. Empty: a thread of its own.
    std::function<bool(std::function<void()>)> post;
  };
  explicit SnapshotKeeper(const Parts& parts);
  ~SnapshotKeeper();

  // Facts of the loaded cell.
  struct Cell {
    std::string key, replica_address;
    ShardLayers layers;
  };
  void Begin(Cell cell);
  void End();  // gives up an unfinished snapshot

  // Takes the snapshot that the command asks for: the present tensors, after `fence.step` steps. An
  // error: there is no snapshot, and training goes on.
  absl::Status Take(const RunCommand& command, const std::vector<NamedTensor>& tensors,
                    Backend& backend);
  SnapshotReport Report() const;
  std::string TakeNote();  // the newest error since the last call; empty: none

 private:
  // One snapshot from its copy to its end. Shared by the executor and the thread.
  struct Task;
  std::shared_ptr<Task> TakeSpare();
  void Finish(const std::shared_ptr<Task>& task);
  absl::Status Send(const Task& task, const HeldShard& held, std::span<const std::byte> file);
  bool IsGivenUp(const Task& task) const;
  bool Post(std::function<void()> work);

  const Parts parts_;
  Cell cell_;  // the executor's
  // The last tasks; the executor's. Their memory is reused once no other thread has them.
  std::vector<std::shared_ptr<Task>> tasks_;
  mutable std::mutex mutex_;  // guards the members below
  uint64_t epoch_ = 0;        // raised by Begin and End: tasks of an older epoch are given up
  SnapshotReport report_;
  std::string note_;
  std::unique_ptr<TaskThread> thread_;  // begun with the first snapshot; null with Parts::post
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_SNAPSHOT_SNAPSHOT_KEEPER_H_
