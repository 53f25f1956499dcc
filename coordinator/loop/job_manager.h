// JobManager: the job loop. It owns all job state, the fleet and the journal. Everything else talks
// to it by events. The logic is pure (coordinator/job/job_state.h): this class persists, then acts.
// Ownership:  borrows stage client, checkpoint store, file system, codec and clock, which outlive
//             it. The clock also outlives the stage client, whose late answers read it.
// Threads:    public functions from any thread. `done` callbacks and watchers must not block. They
//             run on the job loop thread, with two exceptions. List, and requests that read the
//             spec of an ended job, answer on a thread of their own. A request that is refused at
//             once answers on the caller's. Its own threads: one loop, two for effects (file system
//             work). One plans for jobs, one checks and plans for clients, one copies long answers.
// Errors:     Submit: INVALID_ARGUMENT (field path); ALREADY_EXISTS (same id, other spec, or
//             checkpoints of an unknown job under this id); RESOURCE_EXHAUSTED (queue full);
//             NOT_FOUND and FAILED_PRECONDITION (what to resume from). Resume: NOT_FOUND,
//             INVALID_ARGUMENT, FAILED_PRECONDITION (ended, or goes on with other stages). Get,
//             Cancel, Watch: NOT_FOUND. Any of them: UNAVAILABLE while shutting down.
// Durability: Submit answers after the journal has the job on disk. A restarted manager opens the
// same journal with the next term and takes unfinished jobs up again. While the journal
//             cannot be written, training goes on, but nobody is told what only memory knows. A
//             job that writes texts waits once max_unwritten_text_bytes of them are not on disk.
//             Watches of such jobs end within seconds with FAILED_PRECONDITION (file, reason,
//             remedy, how far the job is on disk). Cancel and Resume answer so too. Get and List
//             show an ended job in the phase that it has on disk, with that text.
#ifndef STAGECOACH_COORDINATOR_LOOP_JOB_MANAGER_H_
#define STAGECOACH_COORDINATOR_LOOP_JOB_MANAGER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/threads/clock.h"
#include "checkpoint/store/store.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/job/job_caller.h"
#include "coordinator/job/view/job_view.h"
#include "coordinator/loop/job_files.h"
#include "coordinator/loop/stage_client.h"
#include "plan/job/job_spec.h"
#include "plan/plan.h"
#include "plan/stage_death.h"

namespace stagecoach {

// JobCodec: turns a spec into the opaque text that the journal keeps, and back. Thread-safe.
class JobCodec {
 public:
  virtual ~JobCodec() = default;
  virtual std::string Encode(const JobSpec& spec) const = 0;
  virtual absl::StatusOr<JobSpec> Decode(const std::string& text) const = 0;
};

struct JobManagerOptions {
  std::string state_folder;    // journal.sqlite, lock file, exports
  double lease_seconds = 1.5;  // a silent stage is lost after this
  int64_t max_jobs = 1000;     // unfinished ones
  // Bytes of their specs as texts. A network in memory may take a hundred times as much.
  int64_t max_spec_bytes = int64_t{16} << 20;
  // If users have names, one user gets 1 / shares_of_users of both limits.
  int64_t shares_of_users = 4;
  // The journal keeps this many ended jobs, the newest, for keep_ended_days; 0 days: for ever.
  int64_t keep_ended_jobs = 1000;
  double keep_ended_days = 90;
  // Deadlines for progress (JobLimits).
  double step_deadline_floor_seconds = 10;
  double load_deadline_seconds = 120;
  int64_t max_failures_per_step = 3;  // as JobLimits has it
  int64_t max_records = 100000;       // kept per job; older step records are thinned
  // Kept per job in memory while the journal cannot be written. The oldest step records are
  // dropped; a job that writes texts waits.
  int64_t max_unwritten_steps = 10000;
  size_t max_unwritten_text_bytes = size_t{4} << 20;
  bool hold_jobs = false;  // at the start: unfinished jobs wait for Resume
  // The jobs are copies from other coordinators. No job changes, and weights lie where they were
  // made.
  bool only_shows = false;
};

class JobManager {
 public:
  struct Parts {
    StageClient* stages = nullptr;
    CheckpointStore* checkpoints = nullptr;
    FileSystem* file_system = nullptr;
    const JobCodec* codec = nullptr;
    const Clock* clock = nullptr;
    // Called with every new record once it is on disk, before anybody watches it. On the loop
    // thread; must not block. May be empty.
    std::function<void(const std::string& job, const JobRecord& record)> on_record;
    // Called with every job when it is accepted. On the job loop; must not block.
    std::function<void(const JobView&)> on_accepted = {};
    // Called once when the journal cannot be written, and once (OK) when it can be again. Called
    // also at the end of every job whose last records were lost with it. On the job loop; must not
    // block.
    std::function<void(const absl::Status&)> on_journal = {};
    // Called once when the lock of the state folder was replaced. Another coordinator may be at
    // work on it, so from then on nothing is written, and the process should end. On the job loop;
    // must not block.
    std::function<void(const absl::Status&)> on_folder_lost = {};
    // Called at the start with jobs that have folders of checkpoints or records, but that the
    // journal neither has nor forgot. The journal lost its last entries. Called before Start
    // returns.
    std::function<void(const std::vector<std::string>&)> on_unknown_jobs = {};
    // Called when an ended job is not known any more (keep_ended_jobs, keep_ended_days). On the job
    // loop; must not block.
    std::function<void(const JobView&)> on_purged = {};
    // Called when a job that RemoveJob removed is gone, with its files. On the job loop; must not
    // block.
    std::function<void(const JobView&)> on_removed = {};
    // Called before the files of a job are removed that ended under this manager or before: whoever
    // writes its records lets go of them. On the effects thread of the job; may wait for files.
    std::function<void(const std::string& job)> before_removal = {};
  };
  // Locks the state folder (a second coordinator is refused: FAILED_PRECONDITION), raises the term,
  // reads the journal, starts the threads.
  static absl::StatusOr<std::unique_ptr<JobManager>> Start(const JobManagerOptions& options,
                                                           const Parts& parts);
  ~JobManager();  // Shutdown
  // Call it before Shutdown. New jobs are refused (UNAVAILABLE). Running ones end the step at hand
  // and stay in the journal for the next coordinator, with a checkpoint at that step if `save`.
  // Waits for that, at most `seconds`. False: the rest is abandoned. Any thread but the loop's.
  bool Drain(bool save, double seconds);
  void Shutdown();

  // wanted: false if nobody waits for the answer any more; the answer is then CANCELLED. Any thread
  // calls it before each longer piece of work, perhaps also after the answer. Empty: somebody
  // waits.
  // caller: owner of the job. PERMISSION_DENIED if it resumes from a job of another.
  void Submit(const std::string& id_or_empty, const JobSpec& spec,
              std::function<void(absl::StatusOr<JobView>)> done, std::function<bool()> wanted = {},
              const JobCaller& caller = {});
  // Whether the caller may see and change this job. The functions below do not ask again.
  void CheckCaller(const JobCaller& caller, const std::string& id,
                   std::function<void(absl::Status)> done);
  void Get(const std::string& id, std::function<void(absl::StatusOr<JobView>)> done);
  // All jobs, newest first; ended jobs come without their specs.
  void List(std::function<void(absl::StatusOr<std::vector<JobView>>)> done);
  // As List, at most `most` jobs that were submitted before the job of this sequence (0: the
  // newest). Pages stay as they are when new jobs come.
  struct Page {
    std::vector<JobView> jobs;
    uint64_t next = 0;  // `before` of the next page; 0: this is the last one
  };
  // A page of the jobs that the caller may see.
  void ListPage(uint64_t before, size_t most, std::function<void(absl::StatusOr<Page>)> done,
                const JobCaller& caller = {});
  // Records on disk with number > after, in order, at most `limit` and kMostRecords. If they are no
  // full page (coordinator/job/view/record_page.h), no more exist now, or the next one cannot be
  // read. FAILED_PRECONDITION: the first one cannot be read.
  void Records(const std::string& id, uint64_t after, int limit,
               std::function<void(absl::StatusOr<std::vector<JobRecord>>)> done);
  static constexpr int kMostRecords = 256;
  // The held-out pictures that people are shown, as coordinator/job/view/shown_json.h writes them.
  void Shown(const std::string& id, std::function<void(absl::StatusOr<ShownTexts>)> done);
  void Cancel(const std::string& id, std::function<void(absl::StatusOr<JobView>)> done);
  // Lets a held job go on from its newest checkpoint. stages 0: as many as its spec says. Harmless
  // if the job goes on already.
  void Resume(const std::string& id, int64_t stages,
              std::function<void(absl::StatusOr<JobView>)> done);
  // Keeps the checkpoints that the job has now until the pin is released, on any thread. `done` is
  // called on the thread that removes checkpoints, so it must not read them itself. UNAVAILABLE: as
  // any other request.
  void PinCheckpoints(const std::string& id,
                      std::function<void(absl::StatusOr<std::shared_ptr<const void>>)> done);
  // Removes an ended job: its checkpoints, exports and records, then its entry in the journal. The
  // answer is what it occupied. Decided in the journal first: a manager that starts goes on with it.
  // Repeating it is harmless. NOT_FOUND: it is gone. FAILED_PRECONDITION: it has not ended, or its
  // checkpoints are in use.
  void RemoveJob(const std::string& id, std::function<void(absl::StatusOr<JobUsage>)> done);
  // Removes checkpoints as CheckpointStore::Remove does, on the job's effects thread. Those that an
  // unfinished job goes back to stay, and pinned ones.
  void RemoveCheckpoints(const std::string& id, const std::vector<uint64_t>& steps, bool missing_ok,
                         std::function<void(absl::StatusOr<RemovedCheckpoints>)> done);
  // Plan without submitting, for the stages registered now (spec.pipeline.stages 0: all of them).
  // wanted: as Submit's.
  void PlanJob(const JobSpec& spec, std::function<void(absl::StatusOr<Plan>)> done,
               std::function<bool()> wanted = {}, const JobCaller& caller = {});

  // Gives records with number > after, present and future ones. After a terminal state's record the
  // watch ends by itself. `ended` is called once, with NOT_FOUND for an unknown job. It is not
  // called if the watcher left. A watcher leaves by returning false or by Unwatch, which is safe at
  // any time. A call of the watcher that is under way on the loop thread may still end after
  // Unwatch returns. A watch that is left while its request waits costs the loop nothing but its
  // turn.
  using Watcher = std::function<bool(const JobRecord&)>;
  // on_shown: gets what is in no history, at most once a second: a record of kind kState without a
  // number, whose message is what a load is at. Called as the watcher; may be empty.
  using OnShown = std::function<void(const JobRecord&)>;
  uint64_t Watch(const std::string& id, uint64_t after, Watcher watcher,
                 std::function<void(absl::Status)> ended, OnShown on_shown = {});
  void Unwatch(uint64_t watch_id);
  // Number of watches as of the loop's last change of it; any thread, does not wait.
  int64_t watches() const;

  // death: how the stage's previous process ended, if by a signal of its own.
  void RegisterStage(const StageRegistration& registration,
                     std::function<void(absl::StatusOr<LeaseGrant>)> done,
                     const std::optional<StageDeath>& death = std::nullopt);
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

#endif  // STAGECOACH_COORDINATOR_LOOP_JOB_MANAGER_H_
