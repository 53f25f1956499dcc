// JobCheckpoints: the last checkpoint of a job, the one being written, and when the next is due.
// The job owns a temporary folder until it is committed, checked or abandoned.
#ifndef STAGECOACH_COORDINATOR_JOB_STATE_JOB_CHECKPOINTS_H_
#define STAGECOACH_COORDINATOR_JOB_STATE_JOB_CHECKPOINTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "checkpoint/folder_probe.h"
#include "checkpoint/manifest.h"
#include "checkpoint/store/store.h"
#include "coordinator/job/state/activity.h"
#include "plan/control.h"

namespace stagecoach {

struct LastCheckpoint {
  int64_t step = -1;  // -1: none
  int64_t bytes = 0;
  CheckpointRef ref;  // known since the last search or commit
};

inline LastCheckpoint LastCheckpointOf(const CheckpointRef& ref,
                                       const std::vector<ShardInfo>& shards) {
  LastCheckpoint last{.step = static_cast<int64_t>(ref.step), .ref = ref};
  for (const ShardInfo& shard : shards) last.bytes += shard.bytes;
  return last;
}

// A checkpoint that is written while the job trains on (job_beside.cc).
struct WriteBeside {
  Fence fence;                      // of the command that copied; its step is the checkpoint's
  Manifest manifest;                // of that moment, without shards
  std::vector<bool> answered = {};  // by stage: its shard is written, or has failed
  Activity at = Activity::kBeginCheckpoint;  // or kWriteShards, kCommit: what is waited for
  // Its own deadline, as JobOperation has one.
  double since_seconds = 0, stall_seconds = 0, deadline_seconds = 0;
  // That training has waited for it, in all; since when it waits, if it does (AwaitCheckpoint).
  double waited_seconds = 0, awaited_seconds = 0;
};

struct CheckpointWrite {
  double started_seconds = 0;
  bool spares_room = false;           // for the job's last checkpoint
  std::string folder;                 // temporary; empty: none
  absl::Status error;                 // first one of a stage
  std::optional<WriteBeside> beside;  // empty: training waits
};

struct JobCheckpoints {
  bool done = true;         // at this step boundary
  bool requested = false;   // at the next one, due or not
  bool copy_tried = false;  // at this step boundary, for one beside the steps
  LastCheckpoint last;
  CheckpointWrite writing;
  FolderProbe probe;                 // while stages load; no folder: none is under way
  double seconds = 0;                // that training waited for the last one; 0: not known
  double unsaved_train_seconds = 0;  // of steps since the last one, or since one was tried
  std::string unsaved;  // why the job's last one is not written, while it is tried again
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_STATE_JOB_CHECKPOINTS_H_
