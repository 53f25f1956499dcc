// CellSnapshots: snapshots in memory of the loaded cell. It knows whether there is room for them,
// whose copies are kept here, and when one is taken. It also loads from one.
// Ownership: owns store and keeper; borrows peers, back end and clock.
// Threads:   executor thread; store() from any.
// Errors:    Files: DATA_LOSS, a manifest that cannot be read. Write: NOT_FOUND, a shard is not
//            held; DATA_LOSS, its bytes are not those that were taken; the file system's. An error
//            while one is taken is a note in the report.
#ifndef STAGECOACH_STAGE_RUNTIME_CELL_SNAPSHOTS_H_
#define STAGECOACH_STAGE_RUNTIME_CELL_SNAPSHOTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "plan/control.h"
#include "stage/runtime/loaded_cell.h"
#include "stage/runtime/stage_runtime.h"
#include "stage/snapshot/snapshot_files.h"
#include "stage/snapshot/snapshot_keeper.h"
#include "stage/snapshot/snapshot_store.h"

namespace stagecoach {

class CellSnapshots {
 public:
  CellSnapshots(const StageRuntime::Options& options, Backend* backend, const Clock* clock);

  // A load begins: what is held of other jobs goes. The files to load from, or null.
  absl::StatusOr<std::unique_ptr<SnapshotFiles>> Files(const LoadCommand& command);
  // It was loaded: says in its result whether snapshots can be taken.
  void Begin(LoadedCell& loaded);
  void End();  // of the cell; what is held stays
  void Clear(const std::string& job) { store_.Clear(job); }
  // The shards that the command names, into its folder; whatever cell is loaded, or none. The last
  // one's description.
  absl::StatusOr<ShardInfo> Write(FileSystem& file_system, const WriteShardCommand& command) const;

  // The command asks for a snapshot, or says that none will be taken while some are held.
  bool Wants(const RunCommand& command) const;
  void Take(const RunCommand& command, LoadedCell& loaded);
  void Report(StepReport* report);

  SnapshotStore& store() { return store_; }

 private:
  SnapshotPeers* const peers_;
  Backend* const backend_;
  SnapshotStore store_;
  SnapshotKeeper keeper_;
  std::string note_;
  std::optional<uint64_t> whole_step_;  // as reported last
  bool failing_ = false;                // since then, and said already
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_RUNTIME_CELL_SNAPSHOTS_H_
