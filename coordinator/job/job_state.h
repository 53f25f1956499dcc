// JobState: one job as a value, and Apply, its pure transition function: (state, event) to (state,
// records, actions). No clock, no I/O, no lock: time comes in with the event, and the caller
// persists the records before it carries the actions out.
//
//   submitted -> planned -> loading -> running -> finishing -> succeeded
//   running -> succeeded, of a job that writes texts
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
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/job/job_events.h"
#include "coordinator/job/state/activity.h"
#include "coordinator/job/state/job_checkpoints.h"
#include "coordinator/job/state/job_failures.h"
#include "coordinator/job/state/job_load.h"
#include "coordinator/job/state/job_snapshots.h"
#include "coordinator/job/state/job_writing.h"
#include "coordinator/job/view/held_out_watch.h"
#include "coordinator/job/view/job_view.h"
#include "plan/control.h"
#include "plan/plan.h"
#include "scores/corpus_counts.h"

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

// A deadline limits the time without progress. It starts anew whenever something that the operation
// waits for shows progress (DeadlinePassed). Work that gets on may take as long as it likes.
struct JobLimits {
  double step_deadline_floor_seconds = 10;
  double first_step_deadline_seconds =
      60;  // without cards also the largest: processors show progress within operations
  double load_deadline_seconds = 120;
  double profile_deadline_seconds = 60;
  double effect_deadline_seconds = 600;  // one call on the checkpoint store
  // a stage that has not answered by then counts as holding none
  double snapshot_deadline_seconds = 5;
  // If a step fails so often for reasons of stages' own, on different stages, the job ends. If it
  // fails on one stage each time, because there is no other, twice as many end the job. Kills,
  // broken connections and the like do not count. So many deaths by a signal in a row end the job,
  // on whichever stages.
  int64_t max_failures_per_step = 3;
  double average_weight = 0.2;          // of the newest step in the average step time
  double deadline_factor = 5;           // of the average step time
  double sync_bytes_per_second = 20e6;  // a disk that is slower while it syncs counts as stuck
};

// One stage of the placement and its answer to the operation at hand.
struct StageSlot {
  StageRegistration stage;
  int place = 0;  // in the pipeline; a lost slot leaves the others where they are
  std::vector<LayerRange> cells;  // ascending
  bool answered = false;
  StepReport report;  // of the last Run
  // Of the last training step: what people look at.
  PhaseSeconds phases;
  StageMemory memory_peak;
  LoadResult loaded;
  ShardInfo shard;
  bool copied = false;          // with its last command, for a checkpoint beside the steps
  std::vector<HeldShard> held;  // of a snapshot; until it is chosen
};

// The stages that a job wants, was told of, and does without: while it waits for stages, what it
// may be offered (coordinator/fleet/placement.h).
struct JobStages {
  int wanted = 0;                        // 0: all that are free, at least LeastStages
  bool accepts_fewer = false;            // than wanted, until it has loaded
  int ready_count = 0;                   // when last told so
  std::vector<StageRegistration> ready;  // the ready ones; a restarted coordinator knows no others
  // Names of stages that did not answer. They are taken only if there is no other.
  std::vector<std::string> suspects;
  // Stages that do not see the checkpoint folder. They are not taken until they are tried again.
  std::vector<StageProcess> unfit;
  // since when there are not enough without them; 0: there are enough
  double unfit_since_seconds = 0;
  double give_up_seconds = 0;  // the end of the wait for stages; 0: none
};

// From the start of an operation to its end; one with nothing to wait for has no deadline.
struct JobOperation {
  int unanswered = 0;  // stages that have yet to answer
  double started_seconds = 0;
  double stall_seconds = 0;     // longest time without progress; 0: progress does not move it
  double deadline_seconds = 0;  // 0: none
};

// Pace of the steps since the last load.
struct Pace {
  double since_seconds = 0;  // when the job began to run
  double step_seconds = 0;   // average; 0: none yet
};

// Newest losses in a row that are not finite; 0: the newest one is finite.
struct NonFinite {
  int64_t steps = 0;
  uint64_t since = 0, evaluation_since = 0;  // the first step, the step of the first evaluation
};

// The evaluation at a step boundary. If the job averages its weights, it has two halves: the
// weights as they are, then the averages. The first one's means wait for the second, for one
// record. The last half translates, if the job asks for that.
struct EvaluationHalf {
  int64_t batch = 0;       // the one at hand
  int64_t translated = 0;  // mini-batches, once all are evaluated
  CorpusCounts translations;
  double loss_sum = 0, terms = 0;
  std::vector<Measure> sums;
  std::vector<ClassCounts> counts;
};

struct JobEvaluation {
  bool done = true;                // at this step boundary
  int64_t batches = 0;             // of a half, by the last load
  int64_t translated_batches = 0;  // of the last half
  EvaluationHalf half;
  bool average = false;  // it is the second one
  double live_loss = 0;  // mean of the first one
  std::vector<Measure> live_measures;
  HeldOutWatch held_out;
};

// The evaluation that reached training.until, which ends the job.
struct Reached {
  uint64_t step = 0;  // 0: none did yet
  std::string text;   // for people
};

// Fields that are reset together are one struct: those above, and larger ones in
// coordinator/job/state/.
struct JobState {
  std::shared_ptr<const JobDefinition> job;
  JobLimits limits;
  JobPhase phase = JobPhase::kSubmitted;
  Activity activity = Activity::kWaitStages;
  std::string message;

  uint64_t term = 1, generation = 1;
  uint64_t step = 0;         // with `write`: mini-batches of lines that are written
  uint64_t raised_term = 0;  // to be taken with the next generation, if higher
  uint32_t attempt = 0;
  std::vector<StageSlot> slots;  // the placement; while waiting for stages: those that are left
  JobStages stages;
  JobOperation operation;

  std::vector<LayerProfile> profile;
  bool profile_tried = false;
  JobOrigin origin;
  LoadSource source;
  LoadFindings found;
  bool just_resumed = false;  // nothing has run since JobResumed

  Pace pace;
  std::optional<ApplyDecision> pending;  // decided, not sent yet
  JobEvaluation evaluation;
  JobCheckpoints checkpoints;
  JobSnapshots snapshots;
  JobWriting writing;

  uint64_t furthest_step = 0;    // decided steps, ever
  uint64_t optimizer_start = 0;  // see TrainState
  NonFinite nonfinite;
  Reached reached;
  JobFailures failures;
  JobResults results;
  uint64_t stale_events = 0;
  uint64_t records = 0;  // written so far
};

JobState NewJobState(std::shared_ptr<const JobDefinition> job, uint64_t term,
                     const JobLimits& limits);
// Steps of the whole job, which the learning rate goes by; 0: it has epochs and has not loaded its
// data yet. Of a job with `write`: mini-batches of its lines.
int64_t TotalSteps(const JobState& state);
double StepsPerEpochOf(const JobState& state);  // 0: the data is not known yet
// The step at which the job ends: TotalSteps, or the step that reached training.until.
uint64_t LastStep(const JobState& state);
// Of the operation at hand. Its step is that of the weights: a job with `write` leaves them as they
// were loaded.
Fence FenceOf(const JobState& state);
JobView ViewOf(const JobState& state);
// Whether the job waits for stages. Other jobs need not be offered any.
bool WaitsForStages(const JobState& state);
int LeastStages(const JobState& state);  // never fewer, 1 at least
size_t SlotOfLastCell(const JobState& state);  // which has the loss
std::vector<std::vector<LayerRange>> CellsOfSlots(const JobState& state);
// Names of stages that are left of the placement and may have a snapshot of the job in memory.
std::vector<std::string> HoldersOf(const JobState& state);

// When a DeadlinePassed is due: of the operation at hand, or of a checkpoint beside it; 0: none.
double NextDeadline(const JobState& state);
double BesideDeadline(const JobState& state);  // of the checkpoint alone

struct Transition {
  JobState state;
  std::vector<JobRecord> records;  // numbered; to be on disk before the actions are carried out
  std::vector<JobAction> actions;
};

// The state moves in and out. So an event costs no copy of all stages' answers.
absl::StatusOr<Transition> Apply(JobState state, const JobEvent& event);

// The event of this transition waited for so long before its actions were carried out: behind other
// work, or for the journal. That time is not the stages', so the new deadline, if there is one, is
// later by it. `before`: the deadline before the transition.
void StartLate(JobState* state, double before, double late_seconds);
// The operation at hand began so much later than its transition: its commands were held back.
void StartLater(JobState* state, double seconds);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_JOB_STATE_H_
