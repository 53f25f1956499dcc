// JobEvent and JobAction: what a transition of a job answers to, and what it asks for. Commands and
// effects carry a fence, and so do the answers to them.
// Ownership: values.
// Units:     seconds of the caller's monotonic clock; bytes.
#ifndef STAGECOACH_COORDINATOR_JOB_JOB_EVENTS_H_
#define STAGECOACH_COORDINATOR_JOB_JOB_EVENTS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/folder_probe.h"
#include "checkpoint/snapshot.h"
#include "checkpoint/store/store.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/job/job_plan.h"
#include "plan/control.h"
#include "plan/stage_death.h"

namespace stagecoach {

// ---- events -------------------------------------------------------------------------------------

// The job starts, or is taken up again by a coordinator with a higher term. `hold`: it takes no
// stages and waits for JobResumed. A held job stays held over restarts.
struct JobOpened {
  uint64_t term = 0;
  bool restarted = false;
  bool hold = false;
};
// The coordinator has a higher term now, for a stage knew one above its own (JobLoop::MeetTerm).
// What is under way goes on with the old one, and the next recovery takes the new one: stages that
// refuse the old one bring it about.
struct TermRaised {
  uint64_t term = 0;
  std::string why;
};
// A held job goes on, as the definition says now: only pipeline.stages may be another.
struct JobResumed {
  std::shared_ptr<const JobDefinition> job;
};
// At least as many as wanted, or what there is if the job accepts fewer.
struct StagesOffered {
  std::vector<StageRegistration> stages;
  std::vector<std::string> passed_over;  // free, but known not to see the folder of checkpoints
};
// Too few: `ready` of `needed` could be had now, these stages; `alive` are registered in all.
struct StagesShort {
  int needed = 0, ready = 0, alive = 0;
  std::vector<std::string> passed_over;  // as above
  std::vector<StageRegistration> stages = {};
};
struct StageLost {
  std::string name, incarnation, reason;
};
// As its next process tells: it ended by a signal of its own.
struct StageDied {
  std::string name;
  StageDeath death;
};
struct FoundCheckpoint {
  CheckpointRef ref;
  Manifest manifest;
};
struct CheckpointSearched {
  Fence fence;
  absl::StatusOr<FoundCheckpoint> found;
  std::vector<std::string> quarantined;
  bool has_folder = true;  // the job's own is there, whatever is in it
};
struct SnapshotsFound {
  Fence fence;
  int stage = 0;
  absl::StatusOr<std::vector<HeldShard>> held;
};
struct Profiled {
  Fence fence;
  absl::StatusOr<std::vector<LayerProfile>> profile;
};
struct Planned {
  Fence fence;
  absl::StatusOr<JobPlan> plan;
};
struct FolderProbed {
  Fence fence;
  absl::StatusOr<FolderProbe> probe;
};
struct FolderChecked {
  Fence fence;
  std::map<int, absl::Status> faults;  // by stage; empty: all answers are right
};
struct Loaded {
  Fence fence;
  int stage = 0;
  absl::StatusOr<LoadResult> result;
};
struct Reported {
  Fence fence;
  int stage = 0;
  absl::StatusOr<StepReport> report;
};
struct ShardWritten {
  Fence fence;
  int stage = 0;
  absl::StatusOr<ShardInfo> shard;
};
struct CheckpointBegun {
  Fence fence;
  absl::StatusOr<std::string> folder;
};
struct CheckpointCommitted {
  Fence fence;
  absl::StatusOr<CheckpointRef> ref;
};
struct ExportedWeights {
  std::string digest, folder;
};
struct WeightsExported {
  Fence fence;
  absl::StatusOr<ExportedWeights> result;
};
// The time of the operation at hand is over; if there was progress meanwhile, it is given more.
struct DeadlinePassed {
  double heard_seconds = 0;                  // all that came in until then is known
  std::map<std::string, StageSigns> stages;  // by name, from heartbeats
  double effect_moved_seconds = 0;  // when the job's file work showed progress last; 0: never
};
struct CancelRequested {};
struct SaveRequested {};  // the coordinator is about to end

struct JobEvent {
  std::string job;
  Moment now;  // when it happened
  std::variant<JobOpened, TermRaised, JobResumed, StagesOffered, StagesShort, StageLost, StageDied,
               CheckpointSearched, SnapshotsFound, Profiled, Planned, FolderProbed, FolderChecked,
               Loaded, Reported, ShardWritten, CheckpointBegun, CheckpointCommitted,
               WeightsExported, DeadlinePassed, CancelRequested, SaveRequested>
      kind;
};

// ---- actions ------------------------------------------------------------------------------------

// Writes the probe's question into a new temporary folder; RESOURCE_EXHAUSTED unless `bytes` are
// free.
struct ProbeFolder {
  Fence fence;
  int64_t bytes = 0;
};
// Reads the answers of these stages, and removes the folder.
struct CheckFolder {
  Fence fence;
  FolderProbe probe;
  std::vector<int> stages;
  bool last_use = false;  // the job writes no checkpoints: its folder goes too, if it is empty
};
struct SendLoad {
  int stage = 0;
  StagePeer to;
  LoadCommand command;
};
struct SendRun {
  int stage = 0;
  StagePeer to;
  RunCommand command;
};
struct SendWriteShard {
  int stage = 0;
  StagePeer to;
  WriteShardCommand command;
};
struct SendFindSnapshots {
  int stage = 0;
  StagePeer to;
  Fence fence;
  std::string key;  // SnapshotPlan::key
};
struct SendProfile {
  StagePeer to;
  Fence fence;
};
struct SendAbort {
  StagePeer to;
  Fence fence;
  std::string reason;
};
struct SendRelease {
  StagePeer to;
  Fence fence;
};
struct DoubtStage {
  std::string name, incarnation;
};
// What a job found out about stages, for the jobs to come.
struct NoteFolder {
  std::vector<StageProcess> stages;
  bool sees = false;
};
struct SearchCheckpoint {
  Fence fence;
  std::string job;    // whose
  int64_t step = -1;  // -1: newest
};
struct BeginCheckpoint {
  Fence fence;
  int64_t bytes = 0;
};
inline constexpr int64_t kKeepAll = std::numeric_limits<int64_t>::max();
struct CommitCheckpoint {
  Fence fence;
  std::string folder;
  Manifest manifest;
  std::vector<ExpectedTensor> expected;
  // how many stay; kKeepAll for the last checkpoint: its export removes the surplus
  int64_t keep = 1;
};
struct AbandonCheckpoint {
  std::string folder;
};
struct ExportCheckpoint {
  Fence fence;
  CheckpointRef ref;
  int64_t keep = 1;  // how many stay once it is exported
};

using JobAction =
    std::variant<MakeJobPlan, ProbeFolder, CheckFolder, SendLoad, SendRun, SendWriteShard,
                 SendFindSnapshots, SendProfile, SendAbort, SendRelease, DoubtStage, NoteFolder,
                 SearchCheckpoint, BeginCheckpoint, CommitCheckpoint, AbandonCheckpoint,
                 ExportCheckpoint>;

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_JOB_EVENTS_H_
