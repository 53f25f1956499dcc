// JobTransition: the workings of Apply. It builds the next state, its records and actions. One
// object serves one event. The member functions are grouped by file:
//   job_state.cc        dispatch, and what all share
//   job_start.cc        checkpoint search, stages, profile, plan, load
//   job_folder.cc       does everybody see the checkpoint folder?
//   job_hold.cc         held and resumed
//   job_steps.cc        train, evaluate
//   job_checkpoints.cc  checkpoint, export
//   job_end.cc          does it end well?
//   job_snapshots.cc    snapshots in memory
//   job_save.cc         those as checkpoints
//   job_recovery.cc     losses, deadlines, failure, cancel
// Threads:   lives within one call of Apply.
#ifndef STAGECOACH_COORDINATOR_JOB_JOB_TRANSITION_H_
#define STAGECOACH_COORDINATOR_JOB_JOB_TRANSITION_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/job/job_state.h"
#include "coordinator/job/step_decision.h"

namespace stagecoach {

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
  int layers() const { return static_cast<int>(state_.job->network.layers.size()); }
  // At which the job ends. Of a job in epochs that has not loaded its data yet: no step is.
  uint64_t last_step() const { return LastStep(state_); }

  // What all share.
  void Stale() { ++state_.stale_events; }
  bool Expects(Activity activity, const Fence& fence);              // else counts it as stale
  bool Answered(Activity activity, const Fence& fence, int stage);  // true: fresh, now marked
  bool AllAnswered() const;
  void BeginOperation(Activity activity, double stall_seconds);  // new attempt, nobody answered
  void Enter(JobPhase phase, const std::string& message);        // with a record
  // A message may contain names of files, and bytes from them. One that is no UTF-8 would break
  // every list of jobs.
  void Say(const std::string& message);
  JobRecord& Record(JobRecord::Kind kind, const std::string& message);
  // "job a, step 17, train", and ", stage 1 (b)": behind the cause of an error
  // (base/errors/error_place.h).
  std::string Place() const;
  std::string Place(int stage) const;
  std::string StageText(int stage) const;

  // Start.
  void Hold(const std::string& why);
  void SearchOwnCheckpoint();
  void SearchResumeCheckpoint();
  void TakeTrainState(const TrainState& train);
  void WaitForStages();
  void SetWaitDeadline();
  bool TriesUnfitAgain();
  void TakeManifest(const FoundCheckpoint& found);
  bool Resumes() const;  // it loads what was trained
  void PlaceStages();
  void StartProfile();
  void StartPlanning();
  void SendLoads();
  void FinishLoad();
  std::string LoadedFingerprint() const;
  absl::Status CheckFingerprints() const;
  absl::Status CheckData();
  void TakeFacts();
  void NoteData();
  absl::Status CheckWeights();
  absl::Status CheckSteps();

  // The checkpoint folder.
  bool HasRun() const;
  int64_t BytesBeforeStart() const;
  void AskForFolder();
  std::map<int, absl::Status> RefusedFolders() const;
  bool RefusedBeforeFirstRun();  // and then the job has failed, or loads again
  std::string LeaveRefusersAside();
  void CheckAnswers();
  // kStagesAlone: the coordinator does not find the files that they wrote. No stage is to blame.
  enum class FolderSeenBy { kNoStage, kSomeStages, kStagesAlone };
  FolderSeenBy SeenByStages() const;
  std::string RefusalText(const std::map<int, absl::Status>& faults) const;
  void NoteRefusals(const std::map<int, absl::Status>& faults, FolderSeenBy seen_by);
  void LeaveAside(const std::map<int, absl::Status>& faults, FolderSeenBy seen_by);
  void FolderRefused(const std::map<int, absl::Status>& faults, FolderSeenBy seen_by);
  std::string UnfitText(const std::vector<std::string>& passed_over = {}) const;

  // Steps.
  double StepStallSeconds() const;
  void Continue();  // at a step boundary: what comes next
  void SendRuns(Activity activity, WorkKind work, uint64_t evaluation_batch);
  void Train();
  void AppliedOtherwise(int stage);
  void FinishTrain();
  void NoteLoss(const StepDecision& decision);
  void RecordStep(const StepDecision& decision, double learning_rate);
  void StartEvaluation();
  void StartEvaluationHalf();
  void FinishEvaluationBatch();
  void FinishEvaluationHalf();
  void RecordEvaluation();
  void EndIfReached(double loss, const std::vector<Measure>& measures);

  // Checkpoints.
  // The step ends one of the spans, or is the last.
  bool BoundaryOf(int64_t every_steps, double every_epochs) const;
  bool CheckpointDue() const;  // of one by time
  int64_t CheckpointBytes() const;
  void StartCheckpoint();
  void FinishShards();
  std::vector<ShardInfo> WrittenShards() const;
  std::vector<ExpectedTensor> ExpectedTensors(const std::vector<ShardInfo>& shards) const;
  Manifest MakeManifest(std::vector<ShardInfo> shards) const;
  void CheckpointFailed(const absl::Status& status);
  void Export();
  // After its last step: OK, or why the job has learned nothing.
  absl::Status EndStatus() const;
  void Finish();

  // Snapshots in memory.
  void FindWeights();  // in memory, where they may be, or on disk
  bool MayHoldSnapshots() const;
  void AskForSnapshots();
  std::string SnapshotKey() const;
  std::optional<Snapshot> NewestHeld(uint64_t least);  // of what the stages said
  void ChooseSnapshot();
  bool TakeSnapshot(const Snapshot& snapshot);
  SnapshotPlan SnapshotPlanOf(size_t stage) const;
  void LoadFromSnapshotFailed(const absl::Status& status);
  void BeginSnapshots();
  void ReleaseLeft();
  void RequestSnapshot(RunCommand* command);
  void NoteSnapshots();
  int64_t SnapshotEvery() const;
  bool SnapshotDue() const;
  std::string SnapshotManifest() const;

  // Snapshots as checkpoints, while stages are waited for.
  bool MaySave() const;
  bool GivesUp() const;  // the wait for stages is over, and the job is to fail
  void StartSave();
  void SaveNewest();
  void WriteSnapshotShards();
  Manifest SavedManifest() const;
  void EndSave();

  // Trouble.
  void OperationFailed(int stage, const absl::Status& status);
  // It had a place in the generation of this fence, which is the one at hand or the one before.
  bool WorkedAt(const Fence& fence, const std::string& stage_name) const;
  void NoteFormer(const StageSlot& slot);  // of the generation before
  bool IsOfLastGeneration(const Fence& fence) const;
  void LateFailure(const Reported& event);
  // Of a stage's own. True: once too often, and the job has ended.
  bool IsPoison(const std::set<std::string>& stages, uint64_t step, const std::string& cause);
  bool LoadsTooOften(const std::string& cause);
  void StageFailed(const std::set<std::string>& stages, const std::string& cause);
  void Recover(const std::string& cause);
  void BeginGeneration();
  void BackOff(double seconds);
  void Blame(const std::string& stage_name, const char* reason);
  void DropCheckpoint();
  void AbortStages(const std::string& reason);
  void Fail(const absl::Status& status);
  void End(JobPhase phase, const std::string& message);
  double LastMoved(const DeadlinePassed& event) const;  // of what the operation waits for
  void StagesOverdue(const DeadlinePassed& event);
  void StorageOverdue();
  void StorageFailed(const std::string& text);
  void WaitedTooLong();
  std::string GoesOnText() const;

  JobState state_;
  const Moment now_;
  std::vector<JobRecord> records_;
  std::vector<JobAction> actions_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_JOB_TRANSITION_H_
