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
// Commits only while `owner` is ok, then removes old ones but for those pinned at that moment. A
// manifest without facts of the data takes those of the newest checkpoint: snapshots come without,
// and a coordinator that was restarted has none.
CheckpointCommitted RunCommit(CheckpointStore& store, const CommitCheckpoint& action,
                              const absl::Status& owner, const CheckpointPins& pins);
// Removes old checkpoints in the same way once the weights are written, and none if they could not
// be.
WeightsExported RunExport(CheckpointStore& store, FileSystem& file_system,
                          const ExportCheckpoint& action, const std::string& folder,
                          const std::string& config_json, const absl::Status& owner,
                          const CheckpointPins& pins);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_LOOP_STORE_EFFECTS_H_
