// JobTransition: the workings of Apply. It builds the next state, its records and actions. One
// object serves one event. The member functions are grouped by file:
//   job_state.cc        dispatch, and what all share
//   job_start.cc        checkpoint search, stages, profile, plan, load
//   job_folder.cc       does everybody see the checkpoint folder?
//   job_hold.cc         held and resumed
//   job_steps.cc        train, evaluate
//   job_write.cc        write texts
//   job_checkpoints.cc  checkpoint
//   job_beside.cc       checkpoint beside the steps
//   job_end.cc          does it end well? export
//   job_snapshots.cc    snapshots in memory
//   job_save.cc         those as checkpoints
//   job_recovery.cc     losses, deadlines, failure, cancel
// Threads:   lives within one call of Apply.
#ifndef STAGECOACH_COORDINATOR_JOB_JOB_TRANSITION_H_
#define STAGECOACH_COORDINATOR_JOB_JOB_TRANSITION_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/job/job_state.h"
#include "coordinator/job/step_decision.h"

namespace stagecoach {

// What needs no more than the state, and more than one file asks.
inline int LayersOf(const JobState& state) {
  return static_cast<int>(state.job->network.layers.size());
}
// "job a, step 17, train", and ", stage 1 (b)": behind the cause of an error
// (base/errors/error_place.h).
std::string Place(const JobState& state);
std::string Place(const JobState& state, int stage);
std::string StageText(const JobState& state, int stage);
bool HasRun(const JobState& state);
bool Writes(const JobState& state);          // it writes texts, and trains nothing
int64_t WriteBatches(const JobSpec& spec);   // mini-batches of its lines, if it has `write`
uint64_t LoadedStep(const JobState& state);  // of the weights that a fence is about
// The step that an answer with this fence is about.
uint64_t StepOf(const JobState& state, const Fence& fence);
// Takes from the reports of a command that computed what people see.
void ShowReports(JobState& state);
// A command is done: clears what failed before, if the job has got on.
void NoteProgress(JobState& state, double now);
// For a message about stages that are missing or left aside; empty if none are.
std::string UnfitText(const JobState& state, const std::vector<std::string>& passed_over = {});
void SetWaitDeadline(JobState& state, double now);
void TakeTrainState(JobState& state, const TrainState& train);
bool IsOfTheDisk(const absl::Status& status);  // a write's or an export's: no fault of the job
int64_t CheckpointBytes(const JobState& state);
bool CheckpointDue(const JobState& state);  // of one by time
Manifest MakeManifest(const JobState& state, std::vector<ShardInfo> shards);
bool IsOfLastGeneration(const JobState& state, const Fence& fence);
void BeginGeneration(JobState& state);
void Blame(JobState& state, const std::string& stage_name, const char* reason);

// Snapshots in memory.
std::string SnapshotKey(const JobState& state);
bool MayHoldSnapshots(const JobState& state);
std::optional<Snapshot> NewestHeld(JobState& state, uint64_t least);  // of what the stages said
SnapshotPlan SnapshotPlanOf(const JobState& state, size_t stage);
void LoadFromSnapshotFailed(JobState& state, const absl::Status& status);
void RequestSnapshot(JobState& state, RunCommand* command);
void NoteSnapshots(JobState& state);
bool MaySave(const JobState& state, double now);  // as a checkpoint, while it waits for stages
bool GivesUp(const JobState& state, double now);  // the wait is over, and the job is to fail
Manifest SavedManifest(const JobState& state);

class JobTransition {
 public:
  JobTransition(JobState state, Moment now) : state_(std::move(state)), now_(now) {}
  Transition Take() && { return {std::move(state_), std::move(records_), std::move(actions_)}; }
  JobState& state() { return state_; }

  void On(const JobOpened& event);
  void On(const TermRaised& event);
  void On(const JobResumed& event);
  void On(const StagesOffered& event);
  void On(const StagesShort& event);
  void On(const StageLost& event);
  void On(const StageDied& event);
  void On(const CheckpointSearched& event);
  void On(const SnapshotsFound& event);
  void On(const Profiled& event);
  void On(const Planned& event);
  void On(const FolderProbed& event);
  void On(const FolderChecked& event);
  void On(const Loaded& event);
  void On(const Reported& event);
  void On(const ShardWritten& event);
  void On(const CheckpointBegun& event);
  void On(const CheckpointCommitted& event);
  void On(const WeightsExported& event);
  void On(const DeadlinePassed& event);
  void On(const CancelRequested& event);
  void On(const SaveRequested& event);

 private:
  const JobSpec& spec() const { return state_.job->spec; }

  // What all share.
  void Stale() { ++state_.stale_events; }
  bool Expects(Activity activity, const Fence& fence);              // else counts it as stale
  bool Answered(Activity activity, const Fence& fence, int stage);  // true: fresh, now marked
  bool AllAnswered() const;
  void BeginOperation(Activity activity, double stall_seconds);  // new attempt, nobody answered
  void Rest(Activity activity);                                  // no operation is at hand
  void Enter(JobPhase phase, const std::string& message);        // with a record
  // A message may contain names of files, and bytes from them. One that is no UTF-8 would break
  // every list of jobs.
  void Say(const std::string& message);
  JobRecord& Record(JobRecord::Kind kind, const std::string& message);

  // Start.
  void Hold(const std::string& why);
  void Search(bool own);  // for the newest checkpoint, or that of the job it resumes from
  void WaitForStages();
  void BackToStart();  // as it has no checkpoint of its own
  void TakeManifest(const FoundCheckpoint& found);
  void NoteResumed(const CheckpointRef& ref);
  void PlaceStages();
  void StartPlanning();
  void SendLoads();
  void FinishLoad();

  void AskForFolder();
  bool RefusedBeforeFirstRun();  // and then the job has failed, or loads again
  std::string LeaveRefusersAside();
  void CheckAnswers();
  // stages_alone: the coordinator does not find the files that they wrote.
  void FolderRefused(const std::map<int, absl::Status>& faults, bool stages_alone);

  void Continue();  // at a step boundary: what comes next
  void SendRuns(Activity activity, WorkKind work, uint64_t evaluation_batch, bool copy = false);
  void FinishTrain();
  void StartEvaluation(bool average);  // a half of it
  void FinishEvaluationBatch();
  void ContinueEvaluation();  // its next mini-batch, half, or end
  void RecordEvaluation();

  void StartWriting();
  void SendWrite();  // the mini-batch at hand, from its beginning or on
  void FinishWrite();
  void RecordWritten(std::vector<WrittenPiece> pieces);

  void StartCheckpoint();
  void FinishShards();
  void CheckpointFailed(const absl::Status& status);
  uint64_t StepOfWrite() const;
  void RecordWrite(const std::string& error);  // empty: it is committed
  void Finish();

  // A checkpoint beside the steps.
  bool MayWriteBeside() const;  // at this step boundary
  void CopyShards();            // and then write them beside the steps, if all could
  void NoteCopies();
  void StartBeside();
  void AwaitCheckpoint();         // it ends before anything else begins
  bool AwaitsCheckpoint() const;  // the job does
  double EndBeside();             // the seconds that training waited
  void BesideOverdue(const DeadlinePassed& event);
  // Of a checkpoint that training waits for, or of one beside it.
  void EnterWrite(Activity activity);
  bool ExpectsWrite(Activity activity, const Fence& fence);  // else counts it as stale
  bool ShardAnswered(const ShardWritten& event);             // true: fresh, now marked
  bool AllShardsAnswered() const;
  void ShardFailed(int stage, const absl::Status& status);

  // Snapshots in memory.
  void FindWeights();  // in memory, where they may be, or on disk
  void AskForSnapshots();
  void ChooseSnapshot();
  void BeginSnapshots();
  void ReleaseLeft();

  // Snapshots as checkpoints, while stages are waited for.
  void StartSave();
  void SaveNewest();
  void WriteSnapshotShards();
  void EndSave();

  // Trouble.
  void OperationFailed(int stage, const absl::Status& status);
  void FailedAt(int stage, const absl::Status& status, Activity activity, const std::string& place);
  void LateFailure(const Reported& event);
  // Of a stage's own. True: once too often, and the job has ended.
  bool IsPoison(const std::set<std::string>& stages, uint64_t step, const std::string& cause);
  bool LoadsTooOften(const std::string& cause);
  void StageFailed(const std::set<std::string>& stages, const std::string& cause);
  void Recover(const std::string& cause);
  void DropCheckpoint();
  void AbortStages(const std::string& reason);
  void Fail(const absl::Status& status);
  void End(JobPhase phase, const std::string& message);
  void StagesOverdue(const DeadlinePassed& event);
  void StorageFailed(const std::string& text);
  void WaitedTooLong();

  JobState state_;
  const Moment now_;
  std::vector<JobRecord> records_;
  std::vector<JobAction> actions_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_JOB_TRANSITION_H_
