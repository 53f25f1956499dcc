// JobManager: the job loop. It owns all job state, the fleet and the journal; everything else talks to
// it by events. The logic is pure (coordinator/job_state.h): this class persists, then acts.
// Ownership: borrows stage client, checkpoint store, file system, codec and clock, which outlive it.
// Threads:   public functions from any thread; `done` callbacks and watchers run on the job loop thread
//            and must not block. One loop thread, two effects threads (file system work).
// Errors:    Submit: INVALID_ARGUMENT (field path), ALREADY_EXISTS (same id, other spec),
//            RESOURCE_EXHAUSTED (queue full). Get, Cancel, Watch: NOT_FOUND.
// Durability: Submit answers after the journal has the job on disk. A restarted manager opens the same
//            journal with the next term and takes unfinished jobs up again.
#ifndef STAGECOACH_COORDINATOR_JOB_MANAGER_H_
#define STAGECOACH_COORDINATOR_JOB_MANAGER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "checkpoint/store.h"
#include "coordinator/stage_client.h"
#include "plan/job_spec.h"
#include "plan/plan.h"

namespace stagecoach {

// JobCodec: turns a spec into the opaque text that the journal keeps, and back.
class JobCodec {
 public:
  virtual ~JobCodec() = default;
  virtual std::string Encode(const JobSpec& spec) const = 0;
  virtual absl::StatusOr<JobSpec> Decode(const std::string& text) const = 0;
};

// Shown states are PENDING (submitted, planned, loading), RUNNING (running, recovering, finishing),
// SUCCEEDED, FAILED, CANCELLED; `detail` names the inner one.
enum class JobPhase : uint8_t {
  kSubmitted, kPlanned, kLoading, kRunning, kRecovering, kFinishing, kSucceeded, kFailed, kCancelled
};
const char* JobPhaseName(JobPhase phase);
bool IsTerminal(JobPhase phase);

struct StageAssignment {
  std::string stage_name;  // registered name
  std::string address;     // gRPC, host:port
  int first_layer = 0, last_layer = 0;
  PhaseSeconds phases;     // of the last step
  StageMemory memory_peak; // of the last step
};

struct JobView {
  std::string id;
  JobSpec spec;
  JobPhase phase = JobPhase::kSubmitted;
  std::string message;             // why it waits, recovers, failed
  uint64_t generation = 0;
  uint64_t step = 0;               // applied or skipped
  double loss = 0;                 // of the last step
  double evaluation_loss = 0;
  bool has_loss = false, has_evaluation_loss = false;
  double tokens_per_second = 0, step_seconds = 0, bubble = 0, bubble_ideal = 0;
  uint64_t skipped_steps = 0, recoveries = 0;
  int64_t last_checkpoint_step = -1;
  double forecast_step_seconds = 0;
  double submitted_unix_seconds = 0, finished_unix_seconds = 0;
  std::vector<StageAssignment> stages;
  std::string weights_digest;      // "sha256:..." when succeeded
  std::string weights_folder;      // exported model.safetensors and config.json
};

// One line of a job's history, numbered from 1; what `watch` shows and ndjson prints.
struct JobRecord {
  enum class Kind : uint8_t { kState, kStep, kEvaluation, kCheckpoint, kRecovery, kFinished };
  uint64_t number = 0;
  Kind kind = Kind::kState;
  double unix_seconds = 0;
  uint64_t step = 0;               // kStep: 1-based count of finished steps
  JobPhase phase = JobPhase::kSubmitted;
  std::string message;
  double loss = 0, learning_rate = 0, gradient_norm = 0;
  double tokens_per_second = 0, step_seconds = 0, bubble = 0, bubble_ideal = 0;
  bool skipped = false;            // kStep: non-finite, not applied
  uint64_t nonfinite_steps = 0;
  std::string weights_digest;
};

struct StageRegistration {
  std::string name;                // unique; a new process under an old name replaces it
  std::string incarnation;         // random per process start
  std::string address;             // gRPC address that coordinator and neighbours dial
  std::string device;
  std::string version;
  std::string fingerprint;
  int64_t memory_limit_bytes = 0;
};

struct LeaseGrant {
  uint64_t term = 0;
  double lease_seconds = 0;        // renew at a third of this
};

// What a stage tells with each renewal; used to notice a step that makes no progress.
struct StageHeartbeat {
  std::string name, incarnation;
  std::string state;
  Fence fence;
  uint64_t progress = 0;
  std::string waiting_for;
};

enum class StageState : uint8_t { kReady, kBusy, kDraining, kLost };
const char* StageStateName(StageState state);

struct StageView {
  StageRegistration registration;
  StageState state = StageState::kReady;
  std::string job;                 // the one it works for
  double last_heartbeat_unix_seconds = 0;
  std::string waiting_for;
};

struct JobManagerOptions {
  std::string state_folder;            // journal.sqlite, lock file, exports
  double lease_seconds = 1.5;          // a silent stage is lost after this
  int64_t max_jobs = 1000;             // not finished
  double step_deadline_floor_seconds = 10;  // deadline of a step: max(floor, 5 x average)
  double load_deadline_seconds = 120;
  int64_t max_recoveries_per_step = 3;      // the same step failing so often fails the job (poison)
  int64_t max_records = 100000;             // kept per job; older step records are thinned
};

class JobManager {
 public:
  struct Parts {
    StageClient* stages = nullptr;
    CheckpointStore* checkpoints = nullptr;
    FileSystem* file_system = nullptr;
    const JobCodec* codec = nullptr;
    const Clock* clock = nullptr;
  };
  // Locks the state folder (a second coordinator is refused: FAILED_PRECONDITION), raises the term,
  // reads the journal, starts the threads.
  static absl::StatusOr<std::unique_ptr<JobManager>> Start(const JobManagerOptions& options,
                                                           const Parts& parts);
  ~JobManager();  // Shutdown
  void Shutdown();

  void Submit(const std::string& id_or_empty, const JobSpec& spec,
              std::function<void(absl::StatusOr<JobView>)> done);
  void Get(const std::string& id, std::function<void(absl::StatusOr<JobView>)> done);
  void List(std::function<void(std::vector<JobView>)> done);
  void Cancel(const std::string& id, std::function<void(absl::StatusOr<JobView>)> done);
  // Plan without submitting, for the stages registered now (spec.pipeline.stages 0: all of them).
  void PlanJob(const JobSpec& spec, std::function<void(absl::StatusOr<Plan>)> done);

  // Records with number > after, those there are and those to come; returns false from the watcher to
  // end. After a terminal state's record the watch ends by itself: `ended` is called once, with
  // NOT_FOUND for an unknown job. Unwatch by id is safe at any time.
  using Watcher = std::function<bool(const JobRecord&)>;
  uint64_t Watch(const std::string& id, uint64_t after, Watcher watcher,
                 std::function<void(absl::Status)> ended);
  void Unwatch(uint64_t watch_id);

  void RegisterStage(const StageRegistration& registration,
                     std::function<void(absl::StatusOr<LeaseGrant>)> done);
  // NOT_FOUND: register again (expired, replaced, or the coordinator restarted).
  void RenewLease(const StageHeartbeat& heartbeat,
                  std::function<void(absl::StatusOr<LeaseGrant>)> done);
  void ListStages(std::function<void(std::vector<StageView>)> done);

  uint64_t term() const;

 private:
  struct State;
  explicit JobManager(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_MANAGER_H_
