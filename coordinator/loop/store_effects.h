// Store effects: the blocking calls on the checkpoint store that jobs ask for, as plain functions.
// Threads: an effects thread, one at a time for a job.
// Errors:  the store's.
#ifndef STAGECOACH_COORDINATOR_LOOP_STORE_EFFECTS_H_
#define STAGECOACH_COORDINATOR_LOOP_STORE_EFFECTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/job/job_state.h"
#include "coordinator/loop/checkpoint_pins.h"

namespace stagecoach {

CheckpointSearched RunSearch(CheckpointStore& store, const SearchCheckpoint& action);
FolderProbed RunProbe(CheckpointStore& store, FileSystem& file_system, const ProbeFolder& action);
FolderChecked RunCheck(CheckpointStore& store, FileSystem& file_system, const CheckFolder& action);
CheckpointBegun RunBegin(CheckpointStore& store, const BeginCheckpoint& action);
// Commits if `owner` is ok, then removes old checkpoints except those pinned at that moment. If a
// manifest has no facts of the data, it takes those of the newest checkpoint: snapshots and
// restarted coordinators have none.
CheckpointCommitted RunCommit(CheckpointStore& store, const CommitCheckpoint& action,
                              const absl::Status& owner, const CheckpointPins& pins);
// Writes the weights, then removes old checkpoints in the same way. If the write failed, none is
// removed.
WeightsExported RunExport(CheckpointStore& store, FileSystem& file_system,
                          const ExportCheckpoint& action, const std::string& folder,
                          const std::string& config_json, const absl::Status& owner,
                          const CheckpointPins& pins);
// Removes checkpoints that a client named, if `owner` is ok.
absl::StatusOr<RemovedCheckpoints> RunRemoval(CheckpointStore& store, const std::string& job,
                                              const CheckpointRemoval& removal,
                                              const absl::Status& owner);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_LOOP_STORE_EFFECTS_H_
