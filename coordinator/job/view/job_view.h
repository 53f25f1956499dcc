// JobView and JobRecord: the public state of a job, and the lines of its history.
// Plain values, copied freely.
// Units and shapes: seconds; steps count finished (applied or skipped) ones.
#ifndef STAGECOACH_COORDINATOR_JOB_VIEW_JOB_VIEW_H_
#define STAGECOACH_COORDINATOR_JOB_VIEW_JOB_VIEW_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan/costs/cost_model.h"
#include "plan/job/job_spec.h"
#include "plan/measure.h"
#include "plan/phase.h"
#include "plan/written_piece.h"

namespace stagecoach {

// Shown states are PENDING (submitted, planned, loading, held), RUNNING (running, recovering,
// finishing), SUCCEEDED, FAILED, CANCELLED; `detail` names the inner one.
enum class JobPhase : uint8_t {
  kSubmitted,
  kPlanned,
  kLoading,
  kRunning,
  kRecovering,
  kFinishing,
  kSucceeded,
  kFailed,
  kCancelled,
  kHeld  // unfinished, until a user lets it go on
};
const char* JobPhaseName(JobPhase phase);  // "submitted", ..., "cancelled"
bool IsTerminal(JobPhase phase);

struct StageAssignment {
  std::string stage_name;  // registered name
  std::string address;     // gRPC, host:port
  std::vector<LayerRange> cells;  // ascending; empty: not planned yet
  PhaseSeconds phases;      // of the last step
  StageMemory memory_peak;  // of the last step
  int stage = 0;            // place in the pipeline, also while stages before it are lost
};

// Why stages made a job recover, since this coordinator started.
struct StageFaults {
  std::string stage_name;
  std::string reason;  // one of kFaultReasons
  uint64_t count = 0;
};
// In order: lease ended or name taken by a new process; call broke; no answer in time; other error.
inline constexpr const char* kFaultReasons[] = {"lost", "unavailable", "deadline", "error"};

// The fields of a spec that lists show.
struct JobSummary {
  std::string name, model, data;  // model and data: only the kind
  int64_t batch_size = 0, micro_batches = 0;
  double epochs = 0;
};
JobSummary SummaryOf(const JobSpec& spec);

// The part that is kept as it is shown.
struct JobResults {
  double loss = 0;             // of the last step with a target that counts, finite or not
  double evaluation_loss = 0;  // of the last evaluation
  bool has_loss = false, has_evaluation_loss = false;
  std::vector<Measure> measures, evaluation_measures;  // of the same step and evaluation
  double tokens_per_second = 0, step_seconds = 0, bubble = 0, bubble_ideal = 0;
  uint64_t skipped_steps = 0, recoveries = 0;
  double data_wait_seconds = 0;  // of all stages, since this coordinator started
  std::vector<StageFaults> faults;
  double forecast_step_seconds = 0;  // 0: there is no plan yet
  double finished_unix_seconds = 0;
  std::string weights_digest;  // "sha256:..." when succeeded
  std::string weights_folder;  // exported model.safetensors and stagecoach.json
};

struct JobView : JobResults {
  std::string id;
  uint64_t sequence = 0;  // order of submission
  JobSummary summary;
  // Shared with the job itself: keep it no longer than the current answer. Null: the job has ended
  // and its spec is only in the journal (JobManager::Get reads it), or that entry is unreadable.
  std::shared_ptr<const JobSpec> spec;
  std::shared_ptr<const Network> network;  // likewise; null for all jobs that have ended
  JobPhase phase = JobPhase::kSubmitted;
  std::string message;  // why it waits, recovers, failed
  // FAILED because its entry in the journal cannot be read; spec and step are not known.
  bool set_aside = false;
  uint64_t generation = 0;
  uint64_t records = 0;     // number of the last one
  uint64_t step = 0;        // applied or skipped; with `write`: mini-batches of lines written
  int64_t total_steps = 0;  // 0: it counts in epochs and has not loaded its data
  int64_t last_checkpoint_step = -1;
  int64_t last_checkpoint_bytes = 0;
  int64_t snapshot_step = -1;  // of the newest that stages have in memory; -1: none
  RateSource forecast_rate_source = RateSource::kAssumed;
  double forecast_flops_per_second = 0;  // of a stage; 0: from a profile
  double submitted_unix_seconds = 0;
  std::string owner;                    // who submitted it, "user/alice"; empty: not known
  std::vector<StageAssignment> stages;  // those of the placement that are not lost
  int pipeline_stages = 0;  // K of the placement, or that it waits for; 0: as many as are free
};

// One line of a job's history, numbered from 1; what `watch` shows and ndjson prints.
struct JobRecord {
  enum class Kind : uint8_t {
    kState,
    kStep,
    kEvaluation,
    kCheckpoint,
    kRecovery,
    kFinished,
    kWritten
  };
  uint64_t number = 0;
  Kind kind = Kind::kState;
  double unix_seconds = 0;
  uint64_t step = 0;  // finished steps, with a kStep's own; with `write`: mini-batches of lines
  JobPhase phase = JobPhase::kSubmitted;
  std::string message;  // kCheckpoint: empty, or why it failed
  // The message with the cluster's paths and addresses, for the log only; neither stored nor sent.
  // Empty: the message had none.
  std::string details;
  double loss = 0, learning_rate = 0, gradient_norm = 0;
  // step_seconds of a kCheckpoint: time of the save.
  double tokens_per_second = 0, step_seconds = 0, bubble = 0, bubble_ideal = 0;
  std::vector<Measure> measures;  // beside a loss
  bool skipped = false;           // kStep: non-finite, not applied
  uint64_t nonfinite_steps = 0;
  std::string weights_digest;
  std::vector<WrittenPiece> written;  // kWritten; none: a mini-batch of lines is over
};

// The held-out pictures that people are shown, and what the network says of them, as
// coordinator/job/view/shown_json.h writes them; empty: there are none.
struct ShownTexts {
  std::string pictures, answers;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_VIEW_JOB_VIEW_H_
