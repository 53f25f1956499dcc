#include "stage/runtime/cell_snapshots.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/numbers/saturate.h"
#include "plan/costs/training_state.h"
#include "stage/runtime/shard_tensors.h"
#include "stage/snapshot/available_memory.h"

namespace stagecoach {
namespace {

// The newest that is whole, and the one that is on its way.
constexpr int64_t kShardsEach = 2;

int64_t FreeBytes() { return AvailableMemory(); }

int64_t BytesOf(const LoadCommand& load, int stage) {
  const int layers = static_cast<int>(load.network->layers.size());
  return MostShardBytes(*load.network, load.spec.training, load.partition.LayersOf(stage, layers));
}

// Whose copies a stage keeps.
int Before(const LoadCommand& load) {
  const int stages = load.partition.stages();
  return (load.stage.value + stages - 1) % stages;
}

// A limit is of the device's memory: copies lie in the host's, which for a card is another one.
bool HasRoom(const LoadedCells& loaded, Backend& backend, int64_t bytes) {
  const int64_t limit = backend.allocator().Use().limit;
  if (limit <= 0 || CopiesForLinks(backend)) return true;
  return SaturatingAdd(loaded.forecast_bytes, bytes) <= limit;
}

int64_t SnapshotBytes(const LoadCommand& load) {
  const int64_t shards =
      SaturatingAdd(BytesOf(load, load.stage.value), BytesOf(load, Before(load)));
  return SaturatingMultiply(kShardsEach, shards);
}

}  // namespace

absl::Status CheckRoomForCopy(const LoadedCells& loaded, Backend& backend) {
  const LoadCommand& load = loaded.command;
  const int64_t snapshots = loaded.result.snapshots ? SnapshotBytes(load) : 0;
  const int64_t bytes = SaturatingAdd(BytesOf(load, load.stage.value), snapshots);
  if (HasRoom(loaded, backend, bytes)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(backend.allocator().Use().limit,
                   " bytes that this stage may take (--memory-limit-bytes of stagecoach-stage, "
                   "--memory-per-stage of stagecoach) have no room for a copy of its shard beside "
                   "the job; training waits for the whole write of a checkpoint"));
}

CellSnapshots::CellSnapshots(const StageRuntime::Options& options, Backend* backend,
                             const Clock* clock)
    : peers_(options.snapshot_peers),
      backend_(backend),
      store_(options.free_memory ? options.free_memory : FreeBytes),
      keeper_({.store = &store_,
               .peers = options.snapshot_peers,
               .clock = clock,
               .free_bytes = options.free_memory ? options.free_memory : FreeBytes,
               .nice = options.compute_nice,
               .post = options.snapshot_post}) {}

absl::StatusOr<std::unique_ptr<SnapshotFiles>> CellSnapshots::Files(const LoadCommand& command) {
  const std::string &job = command.fence.job, &key = command.snapshot.key;
  if (command.snapshot.manifest.empty()) {
    store_.Begin(job, key, std::nullopt);
    return nullptr;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<SnapshotFiles> files,
                   SnapshotFiles::Make(job, command.snapshot, &store_, peers_));
  SnapshotStore::LoadedFrom from{.step = files->manifest().state.step};
  for (const ShardInfo& shard : files->manifest().shards) from.files.insert(shard.file);
  store_.Begin(job, key, from);
  return files;
}

void CellSnapshots::Begin(LoadedCells& loaded) {
  const LoadCommand& load = loaded.command;
  const SnapshotPlan& plan = load.snapshot;
  if (peers_ == nullptr || plan.key.empty() || plan.replica_address.empty()) return;
  if (!HasRoom(loaded, *backend_, SnapshotBytes(load))) {
    loaded.result.snapshot_note =
        absl::StrCat("no snapshots in memory: ", backend_->allocator().Use().limit,
                     " bytes that this stage may take (--memory-limit-bytes of stagecoach-stage, "
                     "--memory-per-stage of stagecoach) have no room for two of its own and two of "
                     "its neighbour's beside the job; a lost stage costs the steps since the last "
                     "checkpoint");
    return;
  }
  loaded.result.snapshots = true;
  const int layers = static_cast<int>(load.network->layers.size());
  const Partition& partition = load.partition;
  const int own = load.stage.value, before = Before(load);
  keeper_.Begin({.key = plan.key,
                 .replica_address = plan.replica_address,
                 .layers = partition.LayersOf(own, layers)});
  store_.TakeCopies({.cell = load.fence,
                     .file = ShardFileName(partition.LayersOf(before, layers)),
                     .most_bytes = BytesOf(load, before)});
}

void CellSnapshots::End() {
  keeper_.End();
  note_.clear();
  whole_step_.reset();
  failing_ = false;
}

absl::StatusOr<ShardInfo> CellSnapshots::Write(FileSystem& file_system,
                                               const WriteShardCommand& command) const {
  const Fence& fence = command.fence;
  ShardInfo last;
  for (const std::string& name : command.snapshot_files) {
    const std::optional<StoredShard> shard =
        store_.Find(fence.job, command.snapshot_key, fence.step, name);
    if (!shard.has_value()) {
      return absl::NotFoundError(
          absl::StrCat("shard ", name, " of a snapshot of step ", fence.step, " is not here"));
    }
    last = shard->held.info;
    RETURN_IF_ERROR(WriteShardBytes(file_system, command.folder, last, shard->file));
  }
  return last;
}

bool CellSnapshots::Wants(const RunCommand& command) const {
  return !command.snapshot.empty() || (command.snapshots_end && store_.bytes() > 0);
}

void CellSnapshots::Take(const RunCommand& command, LoadedCells& loaded) {
  if (command.snapshots_end) store_.Clear(command.fence.job);
  if (command.snapshot.empty()) return;
  const absl::Status taken =
      keeper_.Take(command, TrainingTensors(loaded.all_cells(), *loaded.optimizer), *backend_);
  if (!taken.ok())
    note_ = absl::StrCat("no snapshot of step ", command.fence.step, ": ",
                         std::string(taken.message()));
}

void CellSnapshots::Report(StepReport* report) {
  report->snapshot = keeper_.Report();
  std::string note = std::exchange(note_, "");
  if (note.empty()) note = keeper_.TakeNote();
  if (std::exchange(whole_step_, report->snapshot.whole_step) != report->snapshot.whole_step) {
    failing_ = false;
  }
  // What fails every few seconds is said once.
  if (!note.empty() && !std::exchange(failing_, true)) report->snapshot_note = std::move(note);
}

}  // namespace stagecoach
