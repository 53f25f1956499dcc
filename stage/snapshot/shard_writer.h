// ShardWriter: writes a stage's shard of a checkpoint beside the next steps. At a step boundary the
// executor copies the tensors, and waits for nothing else. A thread of the writer hashes the copy
// and writes the file. One copy at most: the next is refused until that is written.
// Ownership: owns the thread and the copy; borrows the file system.
// Threads:   Copy, DropUnused and End: the executor's. Write and moves: any. Close and the
//            destructor, on any thread, wait for a call of the file system that is under way.
// Errors:    Copy: UNAVAILABLE while a copy is being written, and as CopyTensors. Write answers the
//            file system's, with the place; ABORTED when the cell has ended meanwhile.
#ifndef STAGECOACH_STAGE_SNAPSHOT_SHARD_WRITER_H_
#define STAGECOACH_STAGE_SNAPSHOT_SHARD_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/threads/progress.h"
#include "base/threads/task_thread.h"
#include "checkpoint/files/file_system.h"
#include "plan/control.h"
#include "stage/snapshot/tensor_copy.h"

namespace stagecoach {

class ShardWriter {
 public:
  struct Parts {
    FileSystem* file_system = nullptr;
    std::function<int64_t()> free_bytes;
    int nice = 0;  // of the thread
    // Instead of a thread; must not run the function within the call. Empty: a thread of its own.
    std::function<bool(std::function<void()>)> post;
  };
  explicit ShardWriter(Parts parts) : parts_(std::move(parts)) {}
  ~ShardWriter() { Close(); }

  // Copies the tensors for the checkpoint of `fence.step`. place: of the cell, for errors.
  absl::Status Copy(const Fence& fence, const std::string& place, const ShardLayers& layers,
                    const std::vector<NamedTensor>& tensors, Backend& backend);
  void DropUnused();  // a copy that nobody has asked to write
  void End();         // the cell ends: gives up the copy, also while it is written

  using Done = std::function<void(absl::StatusOr<ShardInfo>)>;
  // Writes the copy that was taken under the command's fence. False: there is none, and `done` is
  // not called. Else it is called once, on the writer's thread, or here if the copy is written
  // already. It must not block.
  bool Write(const WriteShardCommand& command, const Done& done);
  uint64_t moves() const { return moves_.count(); }  // changes while a write gets on
  void Close();  // ends the thread; a write under way answers first

 private:
  // One copy, from its bytes to its file. Shared with the thread.
  struct Task;
  void Finish(const std::shared_ptr<Task>& task);
  bool Post(std::function<void()> work);

  const Parts parts_;
  ProgressCounter moves_;
  std::mutex mutex_;            // guards the members below
  std::shared_ptr<Task> task_;  // of the cell at hand; null: none
  bool busy_ = false;           // one is being written, perhaps of a cell before
  bool closed_ = false;
  std::unique_ptr<TaskThread> thread_;  // begun with the first write; null with Parts::post
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_SNAPSHOT_SHARD_WRITER_H_
