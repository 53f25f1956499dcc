#include "stage/snapshot/snapshot_keeper.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "stage/snapshot/tensor_copy.h"

namespace stagecoach {
namespace {

// Of the calling thread, at work: what it waits for costs nobody anything.
double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

struct SnapshotKeeper::Task {
  uint64_t epoch = 0;
  Fence fence;
  std::string manifest;
  uint64_t kept = 0;
  bool kept_of_load = false;
  Cell cell;
  MemoryShard shard;
  double seconds = 0;  // of the executor
};

SnapshotKeeper::SnapshotKeeper(const Parts& parts) : parts_(parts) {}

SnapshotKeeper::~SnapshotKeeper() {
  End();
  if (thread_ != nullptr) thread_->Close();
}

void SnapshotKeeper::Begin(Cell cell) {
  cell_ = std::move(cell);
  std::lock_guard<std::mutex> lock(mutex_);
  ++epoch_;
  report_ = {};
  note_.clear();
}

void SnapshotKeeper::End() {
  Begin({});
  tasks_.clear();
}

bool SnapshotKeeper::IsGivenUp(const Task& task) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return task.epoch != epoch_;
}

SnapshotReport SnapshotKeeper::Report() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return report_;
}

std::string SnapshotKeeper::TakeNote() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(note_, "");
}

// Of a snapshot that the store has let go of; null: there is none.
std::shared_ptr<SnapshotKeeper::Task> SnapshotKeeper::TakeSpare() {
  std::shared_ptr<Task> spare;
  std::erase_if(tasks_, [&spare](std::shared_ptr<Task>& task) {
    if (task.use_count() > 1) return false;
    if (spare == nullptr) spare = std::move(task);
    return true;
  });
  return spare;
}

absl::Status SnapshotKeeper::Take(const RunCommand& command,
                                  const std::vector<NamedTensor>& tensors, Backend& backend) {
  if (parts_.peers == nullptr || cell_.key.empty() || cell_.replica_address.empty()) {
    return absl::FailedPreconditionError("this cell was loaded without a place for snapshots");
  }
  if (Report().busy) return absl::UnavailableError("the snapshot before is on its way still");
  const int64_t begin = parts_.clock->MonotonicNanos();
  parts_.store->MakeRoom(command.snapshot_kept, command.snapshot_of_load);
  auto task = std::make_shared<Task>();
  task->fence = command.fence;
  task->manifest = command.snapshot;
  task->kept = command.snapshot_kept;
  task->kept_of_load = command.snapshot_of_load;
  task->cell = cell_;
  const std::shared_ptr<Task> spare = TakeSpare();
  ASSIGN_OR_RETURN(task->shard,
                   CopyTensors(cell_.layers, tensors, backend,
                               parts_.free_bytes, spare == nullptr ? nullptr : &spare->shard));
  task->seconds = static_cast<double>(parts_.clock->MonotonicNanos() - begin) * 1e-9;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    task->epoch = epoch_;
    report_.busy = true;
  }
  tasks_.push_back(task);
  if (Post([this, task] { Finish(task); })) return absl::OkStatus();
  std::lock_guard<std::mutex> lock(mutex_);
  report_.busy = false;
  return absl::UnavailableError("snapshots of cells before are on their way still");
}

bool SnapshotKeeper::Post(std::function<void()> work) {
  if (parts_.post) return parts_.post(std::move(work));
  // One at work, perhaps on a snapshot of a cell before, and one in line: each has a whole shard.
  if (thread_ == nullptr) thread_ = std::make_unique<TaskThread>("snapshot", 1);
  return thread_->TryPost([nice = parts_.nice, work = std::move(work)] {
    // It must not take from the executor what that needs; refused, it is only less polite.
    static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice));
    work();
  });
}

void SnapshotKeeper::Finish(const std::shared_ptr<Task>& task) {
  const double begin = ThreadSeconds();
  const std::optional<ShardInfo> info = task->shard.Digest([&] { return IsGivenUp(*task); });
  if (!info.has_value()) return;
  const HeldShard held{.step = task->fence.step,
                       .layers = task->cell.layers,
                       .manifest = task->manifest,
                       .info = *info};
  const std::span<const std::byte> file = task->shard.file();
  {
    // The store is told of the next load behind Begin: what comes later would be one more than it
    // makes room for.
    std::lock_guard<std::mutex> lock(mutex_);
    if (task->epoch != epoch_) return;
    parts_.store->Add(task->cell.key, {held, file, task});
  }
  const absl::Status sent = Send(*task, held, file);
  std::lock_guard<std::mutex> lock(mutex_);
  if (task->epoch != epoch_) return;
  report_.busy = false;
  if (sent.ok()) {
    report_.whole_step = task->fence.step;
    report_.seconds = task->seconds + ThreadSeconds() - begin;
  } else {
    note_ = absl::StrCat("the snapshot of step ", task->fence.step, " did not get to ",
                         task->cell.replica_address, ": ", sent.ToString());
  }
}

absl::Status SnapshotKeeper::Send(const Task& task, const HeldShard& held,
                                  std::span<const std::byte> file) {
  SnapshotPart part{.fence = task.fence,
                    .key = task.cell.key,
                    .kept = task.kept,
                    .kept_of_load = task.kept_of_load,
                    .shard = held};
  for (size_t offset = 0; offset < file.size(); offset += part.bytes.size()) {
    if (IsGivenUp(task)) return absl::CancelledError("the cell has ended");
    part.offset = static_cast<int64_t>(offset);
    part.bytes = file.subspan(offset, std::min<size_t>(file.size() - offset, kSnapshotPartBytes));
    RETURN_IF_ERROR(parts_.peers->Put(task.cell.replica_address, part));
    if (offset == 0) {  // said once
      part.shard = HeldShard{.step = held.step};
      part.shard.info.file = held.info.file;
    }
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
