// CellSnapshots: snapshots in memory of the loaded cell. It decides whether there is room for them,
// whose copies are kept here, and when one is taken. It also loads from one.
// Ownership: owns store and keeper; borrows peers, back end and clock.
// Threads:   executor thread; store() from any.
// Errors:    Files: DATA_LOSS, a manifest that cannot be read. Write: NOT_FOUND, a shard is not
//            held; DATA_LOSS, its bytes have changed; the file system's. An error while a snapshot
//            is taken is a note in the report.
#ifndef STAGECOACH_STAGE_RUNTIME_CELL_SNAPSHOTS_H_
#define STAGECOACH_STAGE_RUNTIME_CELL_SNAPSHOTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "plan/control.h"
#include "stage/runtime/loaded_cells.h"
#include "stage/runtime/stage_runtime.h"
#include "stage/snapshot/snapshot_files.h"
#include "stage/snapshot/snapshot_keeper.h"
#include "stage/snapshot/snapshot_store.h"

namespace stagecoach {

class CellSnapshots {
 public:
  CellSnapshots(const StageRuntime::Options& options, Backend* backend, const Clock* clock);

  // A load begins: drops snapshots of other jobs. Returns the files to load from, or null.
  absl::StatusOr<std::unique_ptr<SnapshotFiles>> Files(const LoadCommand& command);
  // The cell was loaded. Its result says whether snapshots can be taken.
  void Begin(LoadedCells& loaded);
  void End();  // the cell ends; its snapshots stay
  void Clear(const std::string& job) { store_.Clear(job); }
  // Writes the command's shards into its folder, whether or not a cell is loaded. Returns the
  // description of the last one.
  absl::StatusOr<ShardInfo> Write(FileSystem& file_system, const WriteShardCommand& command) const;

  // The command asks for a snapshot, or says that none will be taken while some are held.
  bool Wants(const RunCommand& command) const;
  void Take(const RunCommand& command, LoadedCells& loaded);
  void Report(StepReport* report);

  SnapshotStore& store() { return store_; }

 private:
  SnapshotPeers* const peers_;
  Backend* const backend_;
  SnapshotStore store_;
  SnapshotKeeper keeper_;
  std::string note_;
  std::optional<uint64_t> whole_step_;  // as reported last
  bool failing_ = false;                // since then; already reported
};

// Whether the memory that this stage may take has room for a copy of its shard, beside the job and
// its snapshots. RESOURCE_EXHAUSTED: it has none.
absl::Status CheckRoomForCopy(const LoadedCells& loaded, Backend& backend);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_RUNTIME_CELL_SNAPSHOTS_H_
