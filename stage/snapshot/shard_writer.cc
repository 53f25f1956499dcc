#include "stage/snapshot/shard_writer.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/error_place.h"
#include "base/errors/status.h"
#include "checkpoint/shard.h"

namespace stagecoach {

struct ShardWriter::Task {
  enum class State : uint8_t { kCopied, kWriting, kWritten };
  Fence fence;
  std::string place;
  ShardLayers layers;
  MemoryShard shard;  // until it is written
  std::string folder;
  std::atomic<bool> given_up = false;
  // Under the writer's mutex.
  State state = State::kCopied;
  std::vector<Done> waiting;
  std::optional<absl::StatusOr<ShardInfo>> result;
};

absl::Status ShardWriter::Copy(const Fence& fence, const std::string& place,
                               const ShardLayers& layers, const std::vector<NamedTensor>& tensors,
                               Backend& backend) {
  DropUnused();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (busy_) return absl::UnavailableError("a shard before is still being written");
  }
  auto task = std::make_shared<Task>();
  task->fence = fence;
  task->place = place;
  task->layers = layers;
  ASSIGN_OR_RETURN(task->shard, CopyTensors(layers, tensors, backend, parts_.free_bytes));
  std::lock_guard<std::mutex> lock(mutex_);
  task_ = std::move(task);
  return absl::OkStatus();
}

void ShardWriter::DropUnused() {
  std::shared_ptr<Task> dropped;  // goes behind the mutex
  std::lock_guard<std::mutex> lock(mutex_);
  if (task_ != nullptr && task_->state == Task::State::kCopied) dropped.swap(task_);
}

void ShardWriter::End() {
  std::shared_ptr<Task> ended;
  std::lock_guard<std::mutex> lock(mutex_);
  ended.swap(task_);
  if (ended != nullptr) ended->given_up = true;
}

bool ShardWriter::Write(const WriteShardCommand& command, const Done& done) {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::shared_ptr<Task> task = task_;
  if (task == nullptr || task->fence != command.fence) return false;
  if (task->state != Task::State::kCopied && task->folder != command.folder) return false;
  if (task->state == Task::State::kWritten) {
    lock.unlock();
    done(*task->result);
    return true;
  }
  if (task->state == Task::State::kCopied) {
    if (!Post([this, task] { Finish(task); })) return false;
    task->folder = command.folder;
    task->state = Task::State::kWriting;
    busy_ = true;
  }
  task->waiting.push_back(done);
  return true;
}

bool ShardWriter::Post(std::function<void()> work) {
  if (closed_) return false;
  if (parts_.post) return parts_.post(std::move(work));
  if (thread_ == nullptr) thread_ = std::make_unique<TaskThread>("shard-writer", 1);
  return thread_->TryPost([nice = parts_.nice, work = std::move(work)] {
    // It must not take from the executor what that needs; refused, it is only less polite.
    static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice));
    work();
  });
}

void ShardWriter::Finish(const std::shared_ptr<Task>& task) {
  std::string folder;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    folder = task->folder;
  }
  const ProgressScope scope(&moves_);
  std::vector<TensorSource> sources;
  for (size_t i = 0; i < task->shard.tensors().size(); ++i) {
    const TensorEntry& tensor = task->shard.tensors()[i];
    sources.push_back({tensor.name, tensor.dtype, tensor.shape,
                       [&task = *task, i]() -> absl::StatusOr<std::span<const std::byte>> {
                         if (task.given_up) return absl::AbortedError("the cell has ended");
                         TickProgress();
                         return std::span<const std::byte>(task.shard.Tensor(i));
                       }});
  }
  // By then the folder may be gone, or begun anew.
  absl::StatusOr<ShardInfo> info = absl::AbortedError("the cell has ended");
  if (!task->given_up) {
    info = WriteShard(*parts_.file_system, folder, task->layers,
                      std::move(sources));
  }
  info = AnnotateAt(std::move(info), task->place);
  std::vector<Done> waiting;
  MemoryShard used;  // its memory goes behind the mutex
  {
    std::lock_guard<std::mutex> lock(mutex_);
    used = std::move(task->shard);
    task->result = info;
    task->state = Task::State::kWritten;
    waiting.swap(task->waiting);
    busy_ = false;
  }
  for (const Done& done : waiting) done(info);
}

void ShardWriter::Close() {
  End();
  std::unique_ptr<TaskThread> thread;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    thread.swap(thread_);
  }
  if (thread != nullptr) thread->Close();
}

}  // namespace stagecoach
