// JobLoop: the job loop without its thread: it owns all jobs, the fleet and the watches, feeds
// events to Apply, persists, and carries actions out. It never waits and reads no clock but the
// one given, so one test thread can run a whole cluster on virtual time; JobManager adds threads.
// Ownership: borrows everything in Parts. Answers of stages may come after the loop's end: they
//            read the clock and call `post`, which must stay callable.
// Threads:   one thread calls everything here. Answers of stages and effects come back through
//            `post` and must run on that thread.
// Errors:    as JobManager.
#ifndef STAGECOACH_COORDINATOR_LOOP_JOB_LOOP_H_
#define STAGECOACH_COORDINATOR_LOOP_JOB_LOOP_H_

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/fleet/placement.h"
#include "coordinator/job/job_state.h"
#include "coordinator/journal/journal.h"
#include "coordinator/loop/checkpoint_pins.h"
#include "coordinator/loop/ended_jobs.h"
#include "coordinator/loop/hidden_places.h"
#include "coordinator/loop/job_files.h"
#include "coordinator/loop/job_manager.h"
#include "coordinator/loop/job_watches.h"
#include "coordinator/loop/turns.h"

namespace stagecoach {

class JobLoop {
 public:
  using Work = std::function<void()>;
  struct Parts {
    JobManagerOptions options;
    JobManager::Parts outside;
    Journal* journal = nullptr;
    uint64_t term = 1;
    std::function<void(Work)> post;              // to run on the loop's thread, later; any thread
    std::function<void(uint64_t, Work)> effect;  // to run elsewhere; in order for equal numbers
    // Long computations, to run elsewhere, in order. A job waits for its own plans, so `plan` has
    // those alone; `check` has what clients ask for.
    std::function<void(Work)> plan;
    std::function<void(Work)> check;            // of clients: their jobs and their plans
    std::function<absl::Status()> owns_folder;  // any thread: is the state folder still ours?
    // A count of the thread that does the effects of this number; it changes while they make
    // progress.
    std::function<uint64_t(uint64_t)> effect_progress;
  };
  explicit JobLoop(Parts parts);

  absl::Status Open();  // takes unfinished jobs up again
  // Does everything that is due. `heard_seconds`: everything posted before this moment has run.
  // Leases and deadlines end by it. So an answer that came in time, while this thread was busy, is
  // never taken for silence.
  void Tick(double heard_seconds);
  double NextTickSeconds() const;
  // No new jobs, no new placements, and of each job only the step at hand, with a checkpoint after
  // it if `save`. `drained` is called once nothing runs any more; a loop that drains goes on
  // draining until Close.
  void Drain(bool save, std::function<void()> drained);
  void Close();  // writes what waits, ends the watches; nothing may be called after it

  void Submit(const std::string& id_or_empty, const JobSpec& spec,
              std::function<void(absl::StatusOr<JobView>)> done, std::function<bool()> wanted = {},
              const JobCaller& caller = {});
  absl::Status CheckCaller(const JobCaller& caller, const std::string& id) const;  // as JobManager
  absl::StatusOr<JobView> Get(const std::string& id) const;
  // Newest first: at most `most` of the jobs that were submitted before the job of sequence
  // `before`.
  struct Page {
    std::vector<std::shared_ptr<const JobView>> jobs;
    uint64_t next = 0;  // `before` of the next page; 0: this is the last one
  };
  static constexpr uint64_t kNewest = std::numeric_limits<uint64_t>::max();
  Page List(uint64_t before = kNewest, size_t most = std::numeric_limits<size_t>::max(),
            const JobCaller& caller = {}) const;
  // The spec of any job, from the journal; views of ended jobs have none.
  absl::StatusOr<std::string> SpecText(const std::string& id) const;
  // Those on disk with number > after, at most `limit` and kRecordsPerPump, and one page.
  absl::StatusOr<std::vector<JobRecord>> Records(const std::string& id, uint64_t after,
                                                 int limit) const;
  static constexpr int kRecordsPerPump = JobWatches::kMostRecords;
  absl::StatusOr<ShownTexts> Shown(const std::string& id) const;  // on disk
  absl::StatusOr<JobView> Cancel(const std::string& id);
  absl::StatusOr<JobView> Resume(const std::string& id, int64_t stages);  // as JobManager
  void PinCheckpoints(
      const std::string& id,
      std::function<void(absl::StatusOr<std::shared_ptr<const void>>)> done);  // as JobManager
  void RemoveJob(const std::string& id,
                 std::function<void(absl::StatusOr<JobUsage>)> done);  // as JobManager
  void RemoveCheckpoints(
      const std::string& id, std::vector<uint64_t> steps, bool missing_ok,
      std::function<void(absl::StatusOr<RemovedCheckpoints>)> done);  // as JobManager
  void PlanJob(const JobSpec& spec, std::function<void(absl::StatusOr<Plan>)> done,
               std::function<bool()> wanted = {}, const JobCaller& caller = {});
  void Watch(uint64_t watch_id, const std::string& id, uint64_t after, JobManager::Watcher watcher,
             std::function<void(absl::Status)> ended, JobManager::OnShown on_shown = {});
  void Unwatch(uint64_t watch_id) { watches_.Drop(watch_id); }
  int64_t watches() const { return watches_.count(); }  // any thread
  // `arrived`: stamped where the call came in; never less than that of the call before.
  absl::StatusOr<LeaseGrant> RegisterStage(const StageRegistration& registration, Moment arrived,
                                           const std::optional<StageDeath>& death = std::nullopt);
  absl::StatusOr<LeaseGrant> RenewLease(const StageHeartbeat& heartbeat, Moment arrived);
  std::vector<StageView> ListStages() const { return fleet_.View(); }

 private:
  absl::Status MayChange() const;  // FAILED_PRECONDITION: the jobs are only shown
  // Facts of a spec's text. The journal has the text; the job has the spec as a value.
  struct JobText {
    std::string sha256;
    int64_t bytes = 0;
  };
  struct Job {
    JobState state;
    JobText text;
    std::vector<JobRecord> unwritten;
    size_t unwritten_steps = 0;       // of them
    size_t unwritten_text_bytes = 0;  // of theirs
    // The commands at hand, while too many texts wait to be written; they are sent afterwards.
    std::vector<JobAction> held_back;
    double held_since_seconds = 0;
    // Records of steps that were dropped since the journal was written last, and the newest's
    // number.
    uint64_t dropped_steps = 0, dropped_up_to = 0;
    HeldOutWatch held_out_on_disk;
    JobPhase phase_on_disk = JobPhase::kSubmitted;
    uint64_t step_on_disk = 0;
    Shortage told;  // the last one, not to repeat it within a generation
    uint64_t told_generation = 0;
    uint64_t effect_progress = 0;  // when last looked at
    double effect_moved_seconds = 0;
    std::string shown_loading;  // the last one shown to watchers, and when
    double shown_loading_seconds = -std::numeric_limits<double>::infinity();
  };
  struct Submission {
    std::function<void(absl::StatusOr<JobView>)> done;
    std::string owner;
    int64_t spec_bytes = 0;  // until they are counted as the job's
  };
  struct Planning {
    std::function<void(absl::StatusOr<Plan>)> done;
    std::string owner;
  };
  // An ended job on its way out (job_removal.cc). From kFiles on the journal has the decision and
  // nobody knows the job. kFailed: not all files could be removed.
  enum class RemovalStep { kAsked, kFiles, kFailed, kEntry };
  struct Removal {
    RemovalStep step = RemovalStep::kAsked;
    std::shared_ptr<const JobView> view;
    JobUsage freed;            // 0 if an earlier coordinator decided
    double retry_seconds = 0;  // of kFailed
    std::vector<std::function<void(absl::StatusOr<JobUsage>)>> done;
  };
  struct CheckpointsAsked {
    std::function<void(absl::StatusOr<RemovedCheckpoints>)> done;
    std::string owner;  // of the job
  };
  // Since when nothing could be written, and why not.
  struct JournalTrouble {
    double since_seconds = 0;
    absl::Status why;
  };
  struct SubmitCheck;  // what Submit knows of the checkpoint store
  struct Inbox;        // where answers arrive
  class Performer;

  Moment Now() const;
  Job* Find(const std::string& id);  // null for those that have ended
  const Job* Find(const std::string& id) const;
  bool Known(const std::string& id) const {
    return Find(id) != nullptr || ended_.Find(id) != nullptr;
  }
  std::vector<std::string> LiveJobs() const;  // ids
  static absl::Status UnknownJob(const std::string& id);
  absl::Status AddFromJournal(const JournalJob& entry);
  void SetAside(const JournalJob& entry, const absl::Status& why);
  // If the state folder moved, rewrites the paths of jobs that moved with it.
  absl::Status MoveJobs();
  std::string ExportFolder(const std::string& job) const {
    return parts_.options.state_folder + "/exports/" + job;
  }
  // Jobs that have folders of checkpoints or records, but are not in the journal and were not
  // forgotten by it.
  std::vector<std::string> UnknownJobs() const;
  std::shared_ptr<const JobDefinition> Define(const JournalJob& entry, const JobSpec& spec,
                                              Network network) const;
  static JobText TextOf(const std::string& spec_text);
  JobFiles Files() const {
    return JobFilesIn(parts_.options.state_folder, parts_.outside.checkpoints,
                      parts_.outside.file_system);
  }
  std::string ResumerOf(const std::string& id) const;
  absl::Status MayRemove(const std::string& id) const;
  void DecideRemoval(const std::string& id, bool pinned, const JobUsage& usage);
  void RemoveFiles(const std::string& id);
  void FilesRemoved(const std::string& id, const absl::Status& status);
  void RetryRemovals();
  double NextRetrySeconds() const;
  std::vector<std::string> RemovedEntries() const;  // ids: only the journal still has them
  void EntryRemoved(const std::string& id);
  void AnswerRemoval(const std::string& id, absl::StatusOr<JobUsage> answer);
  bool BeingRemoved(const std::string& id) const;
  absl::Status NotBeingRemoved(const std::string& field, const std::string& id) const;
  absl::Status OpenRemovals();  // those that an earlier coordinator decided
  void EndRemovals(const absl::Status& reason);
  void RetireEnded();
  bool PurgeWanted() const;
  void PurgeEnded();
  void DropLate(const JobEvent& event);
  absl::StatusOr<JobView> Existing(const std::string& id, const std::string& spec_text,
                                   const JobCaller& caller) const;
  absl::Status MayResumeFrom(const std::string& job, const JobCaller& caller) const;
  absl::Status RoomForAJob(int64_t spec_bytes, const JobCaller& caller) const;
  absl::Status RoomForAJobOf(const JobCaller& user, int64_t spec_bytes) const;
  absl::Status RoomToPlan(const JobCaller& caller) const;
  absl::StatusOr<std::shared_ptr<const JobDefinition>> CheckSpec(const JobSpec& spec) const;
  void AnswerSubmit(uint64_t ticket, absl::StatusOr<JobView> answer);
  std::string NewId(const std::string& name) const;
  absl::StatusOr<JobView> Accept(const std::string& id, JobDefinition definition,
                                 const std::string& spec_text, const SubmitCheck& check,
                                 const JobCaller& caller);

  void Deliver(JobEvent event);
  HiddenPlaces PlacesToHide() const;
  void HoldStages(const Job& job);
  void Perform(Job& job, const std::vector<JobAction>& actions);
  void SendHeldBack(Job& job);
  double DeadlineOf(const std::string& id, const Job& job) const;  // 0: none
  bool Drained() const;
  void DeliverLost(const std::vector<LostStage>& lost);
  void LookAtEffects(Job& job, double now_seconds);
  DeadlinePassed SignsOf(const Job& job, double heard_seconds) const;
  // The words of the first stage that still loads; empty: none says any.
  std::string LoadingText(const Job& job) const;
  void ShowLoading(const std::string& stage);  // to the watchers of its job, if it is new
  void MeetTerm(const StageHeartbeat& heartbeat);
  void RaiseTerm();                               // above met_term_, if that is above ours
  void Settle();                                  // offers stages to waiting jobs
  void TakeFromWaiting(const StageOffer& offer);  // what other waiting jobs hold of it
  std::vector<WaitingJob> WaitingJobs() const;
  void Flush();
  absl::Status OwnsFolder();
  void JournalFailed(const absl::Status& why);
  void JournalWorks();  // it was written
  void DropOldestSteps(Job& job, std::span<const JobRecord> added) const;
  bool JournalGivenUp() const;  // trouble for so long that watchers must know
  absl::Status NotOnDisk(const Job& job) const;
  JobView ShownView(const Job& job) const;
  std::optional<absl::Status> OutlookOf(const std::string& id) const;  // as JobWatches
  void PinResumed(const JobState& state);
  uint64_t EffectsNumber(const std::string& job) const;  // for what touches that job's folder

  const Parts parts_;
  const std::shared_ptr<const Inbox> inbox_;
  const std::shared_ptr<CheckpointPins> pins_ = std::make_shared<CheckpointPins>();
  // Beyond it nobody counts: a stage that tells of more is broken.
  static constexpr uint64_t kHighestTerm = uint64_t{1} << 62;
  uint64_t term_;
  uint64_t met_term_ = 0;    // the highest that a stage has told
  std::string met_term_by_;  // its name
  Fleet fleet_;
  std::map<std::string, Job> jobs_;  // by id; those that live, and ended ones until all is written
  EndedJobs ended_;
  double purge_due_seconds_ = 0;     // not before
  int64_t live_spec_bytes_ = 0;      // of jobs_
  int64_t asked_spec_bytes_ = 0;     // of submitting_
  std::set<std::string> unwritten_;  // jobs with records that are not on disk
  uint64_t next_sequence_ = 1;
  JobWatches watches_;
  std::map<uint64_t, Submission> submitting_;      // by ticket
  std::map<uint64_t, Planning> planning_;          // by ticket
  Turns checks_;                                   // on the checks' thread
  std::map<std::string, Removal> removals_;        // by job
  std::map<uint64_t, CheckpointsAsked> removing_;  // by ticket
  // Of jobs removed in this term, by id: stages may still answer for them.
  std::map<std::string, uint64_t> former_generations_;
  uint64_t last_ticket_ = 0;
  double flush_due_seconds_ = 0;  // 0: nothing waits to be written
  std::optional<JournalTrouble> trouble_;
  double folder_checked_seconds_ = 0;
  bool folder_lost_ = false;  // told already
  bool placement_due_ = false;
  bool draining_ = false;
  std::function<void()> drained_;  // empty once called
  std::set<std::string> stopped_;  // jobs that stand at a step boundary while draining
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_LOOP_JOB_LOOP_H_
