// JobState: one job as a value, and Apply, its pure transition function: (state, event) to (state,
// records, actions). No clock, no I/O, no lock: time comes in with the event, and the caller
// persists the records before it carries the actions out.
//
//   submitted -> planned -> loading -> running -> finishing -> succeeded
//   planned to finishing --stage lost, deadline--> recovering -> planned
//   any live one --Cancel--> cancelled
//   any live one --the coordinator starts and holds its jobs--> held --Resume--> recovering
//   any live one --the job's own fault, no stages, poison (failure_class.h)--> failed
//
// Inside a phase the activity says what is waited for. Every command and effect carries a Fence
// whose attempt grows with each operation of a generation; an answer with another fence, or from a
// stage that answered already, is stale: it is counted and changes nothing.
// Ownership: values; the definition of a job is immutable and shared between copies.
// Threads:   pure functions.
// Units:     seconds of the caller's monotonic clock; layers [first, last).
// Errors:    Apply: INVALID_ARGUMENT for an event of another job. What the world does wrong becomes
//            a recovery or the job's failure, never an error of Apply.
// See: docs/ARCHITECTURE.md, "A step".
#ifndef STAGECOACH_COORDINATOR_JOB_JOB_STATE_H_
#define STAGECOACH_COORDINATOR_JOB_JOB_STATE_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/folder_probe.h"
#include "checkpoint/snapshot.h"
#include "checkpoint/store/store.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/job/job_plan.h"
#include "coordinator/job/view/held_out_watch.h"
#include "coordinator/job/view/job_view.h"
#include "plan/control.h"
#include "plan/plan.h"
#include "plan/stage_death.h"

namespace stagecoach {

// What never changes about a job.
struct JobDefinition {
  std::string id;
  uint64_t sequence = 0;  // order of submission
  JobSpec spec;
  Network network;
  std::string model_sha256;
  double submitted_unix_seconds = 0;
  std::string owner;   // who submitted it (JobCaller::name); empty: not known
  std::string secret;  // the journal's; part of the key of its snapshots
};

// Shares the definition.
inline std::shared_ptr<const Network> NetworkOf(const std::shared_ptr<const JobDefinition>& job) {
  return {job, &job->network};
}

// Of one step: for reasons of the stages' own, and on which ones.
struct StepFailures {
  int64_t count = 0;
  std::set<std::string> stages;  // names
};

// Of stages' processes by a signal of their own, in a row at one step and instruction, without a
// new step behind it.
struct StageDeaths {
  int64_t count = 0;
  uint64_t step = 0;
  std::string instruction;
  std::set<std::string> stages;  // names
  // Of the newest: a generation counts once, however many stages it lost.
  uint64_t term = 0, generation = 0;
};

// Deadlines are of standing still: each starts anew whenever something that the operation waits for
// shows progress (DeadlinePassed). What computes, reads or writes may take as long as it likes.
struct JobLimits {
  double step_deadline_floor_seconds = 10;
  double first_step_deadline_seconds =
      60;  // on hosts also the most: they show progress within operations
  double load_deadline_seconds = 120;
  double profile_deadline_seconds = 60;
  double effect_deadline_seconds = 600;  // one call on the checkpoint store
  double snapshot_deadline_seconds = 5;  // who has not said by then what it holds is not asked
  // A step that fails so often for reasons of stages' own, on different ones, is poison: the job
  // ends. If it was one stage each time, because there is no other, twice as often. Kills, broken
  // connections and the like do not count. Of deaths by a signal so many in a row are the end, on
  // whichever stage.
  int64_t max_failures_per_step = 3;
  double average_weight = 0.2;          // of the newest step in the average step time
  double deadline_factor = 5;           // of the average step time
  double sync_bytes_per_second = 20e6;  // a disk that is slower while it syncs counts as stuck
};

// What a live job waits for.
enum class Activity : uint8_t {
  kFindCheckpoint,
  kWaitStages,
  kFindSnapshots,  // what the stages have in memory
  kProfile,
  kPlan,
  kProbeFolder,  // a question is written into the checkpoint folder
  kLoad,         // which the stages answer when they load
  kCheckFolder,  // their answers are read
  kTrain,
  kFlush,  // the last decision, applied without new work
  kEvaluate,
  kBeginCheckpoint,
  kWriteShards,
  kCommit,
  kExport,
  kBackOff,  // after several recoveries in a row without a new step
  kEnded,
  kHeld
};
const char* ActivityName(Activity activity);

// One stage of the placement and its answer to the operation at hand.
struct StageSlot {
  StageRegistration stage;
  int place = 0;  // in the pipeline; a lost slot leaves the others where they are
  int first_layer = 0, last_layer = 0;
  bool answered = false;
  StepReport report;  // of the last Run
  // Of the last training step: what people look at.
  PhaseSeconds phases;
  StageMemory memory_peak;
  LoadResult loaded;
  ShardInfo shard;
  std::vector<HeldShard> held;  // of a snapshot; until it is chosen
};

// Of a job's snapshots in the memory of stages (job_snapshots.cc).
struct JobSnapshots {
  bool taken = false;     // stages may hold some, of this coordinator's time or before
  bool asked = false;     // for them, in this generation
  bool possible = false;  // all stages of this load have room
  // Of this load: what it was loaded from, the last one that was asked for, and the newest that
  // each stage and its neighbour have.
  std::optional<uint64_t> loaded_step, taken_step, whole_step;
  double seconds = 0;  // that the last one took, of the stage that it took longest; 0: not known
  int64_t unfinished = 0;   // generations in a row that ended while one was on its way
  uint64_t begun_step = 0;  // of this load
  // A job that waits for stages writes what those that are left hold as a checkpoint (job_save.cc):
  // that is the operation at hand, or was tried in this generation; and what was chosen.
  bool saving = false, save_tried = false;
  // It leaves room for the job's last checkpoint, and there was none. Before the job fails it takes
  // that.
  bool save_spares = false, save_lacked_room = false;
  std::optional<Snapshot> saved;
  // What is loaded from; no manifest: nothing.
  std::string manifest;
  std::vector<SnapshotPlan::Holder> holders;
  // Furthest step when this coordinator took the job up; what came behind it may not be on record.
  std::optional<uint64_t> opened_step;
  uint64_t tried_step = 0;   // a load from it that failed
  int64_t tries = 0;         // so often
  std::set<StagePeer> left;  // that may hold some and are not in the placement any more
};

struct JobState {
  std::shared_ptr<const JobDefinition> job;
  JobLimits limits;
  JobPhase phase = JobPhase::kSubmitted;
  Activity activity = Activity::kWaitStages;
  std::string message;

  uint64_t term = 1, generation = 1, step = 0;
  uint64_t raised_term = 0;  // to be taken with the next generation, if higher
  uint32_t attempt = 0;
  std::vector<StageSlot> slots;  // the placement; while waiting for stages: those that are left
  int wanted_stages = 0;         // 0: every one that is free, LeastStages of them
  int ready_stages = 0;          // when last told so
  std::vector<StageRegistration>
      ready;  // these; a coordinator that was restarted knows of no others
  bool accepts_fewer = false;
  std::vector<std::string> suspects;  // did not answer; taken only if there is no other
  std::vector<StageProcess>
      unfit;  // do not see the checkpoint folder; not taken until they are tried again
  double unfit_since_seconds = 0;  // that there are not enough without them; 0: there are
  double give_up_seconds = 0;      // the end of the wait for stages; 0: none

  int unanswered = 0;  // stages that have yet to answer the operation at hand
  double operation_started_seconds = 0;
  double deadline_seconds = 0;      // 0: none
  double stall_seconds = 0;         // without progress; 0: the deadline is not moved by any
  double average_step_seconds = 0;  // since the last load; 0: none yet

  std::optional<ApplyDecision> pending;  // decided, not sent yet
  bool evaluated = true, saved = true;   // at this step boundary
  bool save_requested = false;           // a checkpoint at the next one, due or not
  int64_t evaluation_batches = 0, evaluation_batch = 0;
  double evaluation_loss_sum = 0, evaluation_terms = 0;
  std::vector<Measure> evaluation_sums;
  std::vector<ClassCounts> evaluation_counts;
  // The second half of an evaluation, with the averages of the weights; the first one's means wait
  // for it.
  bool evaluation_average = false;
  double live_loss = 0;
  std::vector<Measure> live_measures;
  std::string temporary_folder;   // of the checkpoint being written, or of the probe
  std::string probe_secret;       // what stages that see the folder can read there
  absl::Status checkpoint_error;  // first error of the one being written
  double checkpoint_started_seconds = 0;
  double checkpoint_seconds = 0;     // that the last one took; 0: not known
  double unsaved_train_seconds = 0;  // of steps since the last one, or since one was tried

  bool searches_own = false;  // or the checkpoint of spec.resume.job
  // Of spec.resume.job: where this job begins. Chosen once, so that a recovery before the first own
  // checkpoint begins with the same bits. -1: not chosen yet, the newest will be.
  int64_t resume_step = -1;
  std::string load_folder;       // to load from; empty: initial weights
  bool fresh_optimizer = false;  // of load_folder, the weights only
  bool just_resumed = false;     // nothing has run since JobResumed
  JobSnapshots snapshots;
  int64_t last_checkpoint_step = -1;
  int64_t last_checkpoint_bytes = 0;
  CheckpointRef last_checkpoint;  // of this job
  std::vector<LayerProfile> profile;
  bool profile_tried = false;
  DatasetManifest data;  // sha256 empty: not known yet
  DataFacts facts;       // what the stages that read have found in it
  HeldOutWatch held_out;
  std::string resumed_data_sha256;  // of the checkpoint of another job
  WeightsManifest weights;          // of spec.initialize; sha256 empty: not known yet
  std::string fingerprint;

  uint64_t skipped_steps = 0;
  // The step whose evaluation reached training.until, which ends the job; 0: none did yet.
  uint64_t reached_step = 0;
  std::string reached_text;       // what was reached, for people
  uint64_t optimizer_start = 0;   // see TrainState
  uint64_t applied_at_start = 0;  // steps of the job that this one resumed
  int64_t consecutive_nonfinite = 0;
  // The first of the steps in a row, and of the evaluations in a row, that are not finite; 0: the
  // last one is.
  uint64_t nonfinite_since = 0, nonfinite_evaluation_since = 0;
  double last_loss = 0, evaluation_loss = 0;  // finite or not
  std::vector<Measure> last_measures, evaluation_measures;
  bool has_loss = false, has_evaluation_loss = false;

  uint64_t furthest_step = 0;                 // decided steps, ever
  std::map<uint64_t, StepFailures> failures;  // by step, since the furthest step was reached
  StageDeaths deaths;
  int64_t load_failures = 0;       // of stages' own, since the last load that worked
  uint64_t failed_generation = 0;  // the last one whose failure was counted above
  int64_t setbacks = 0;            // recoveries since it last got on
  double loaded_seconds = 0;       // when it began to run last
  std::string unsaved;  // why the last checkpoint is not written, while it is tried again
  // Of the generation before: an answer may still come from there.
  Fence former;
  std::vector<std::string> former_stages;  // names, by place
  uint64_t recoveries = 0;
  std::vector<StageFaults> faults;  // since this coordinator started
  double data_wait_seconds = 0;     // likewise
  uint64_t stale_events = 0;
  uint64_t records = 0;  // written so far

  double tokens_per_second = 0, step_seconds = 0, bubble = 0, bubble_ideal = 0;
  double forecast_step_seconds = 0;
  double finished_unix_seconds = 0;
  std::string weights_digest, weights_folder;
};

JobState NewJobState(std::shared_ptr<const JobDefinition> job, uint64_t term,
                     const JobLimits& limits);
// Steps of the whole job, which the learning rate goes by; 0: it has epochs and has not loaded its
// data yet.
int64_t TotalSteps(const JobState& state);
double StepsPerEpochOf(const JobState& state);  // 0: the data is not known yet
// At which the job ends: that, or where it reached training.until.
uint64_t LastStep(const JobState& state);
Fence FenceOf(const JobState& state);  // of the operation at hand
JobView ViewOf(const JobState& state);
// A job waits for stages: the others need not be offered any.
bool WaitsForStages(const JobState& state);
int LeastStages(const JobState& state);  // never fewer, 1 at least
// Names of stages that are left of the placement and may have a snapshot of the job in memory.
std::vector<std::string> HoldersOf(const JobState& state);

// ---- events -------------------------------------------------------------------------------------

// The job starts, or is taken up again by a coordinator with a higher term; `hold`: it is not, but
// waits for JobResumed. A held job stays held over restarts.
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

// Asks in a new temporary folder; RESOURCE_EXHAUSTED unless so many bytes are free.
struct ProbeFolder {
  Fence fence;
  int64_t bytes = 0;
};
// Reads the answers of these stages, and removes the folder.
struct CheckFolder {
  Fence fence;
  FolderProbe probe;
  std::vector<int> stages;
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
  int64_t keep = 1;  // how many stay; kKeepAll: the last one, whose export removes what is too many
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

struct Transition {
  JobState state;
  std::vector<JobRecord> records;  // numbered; to be on disk before the actions are carried out
  std::vector<JobAction> actions;
};

// Moved in and out: an answer costs what it changes, and not a copy of what all stages answered.
absl::StatusOr<Transition> Apply(JobState state, const JobEvent& event);

// The event of this transition waited for so long before its actions were carried out: behind other
// work, or for the journal. That time is not the stages', so the new deadline, if there is one, is
// later by it. `before`: the deadline before the transition.
void StartLate(JobState* state, double before, double late_seconds);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_JOB_STATE_H_
