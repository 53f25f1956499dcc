// From an open job to loaded stages: checkpoint search, waiting for stages, profile, plan, load.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/error_place.h"
#include "base/errors/status.h"
#include "coordinator/job/failure_class.h"
#include "coordinator/job/job_transition.h"
#include "coordinator/job/load_check.h"
#include "coordinator/job/resume_check.h"

namespace stagecoach {
namespace {

constexpr double kTryUnfitSeconds = 10;
// Of a wait for stages, in which a process that was started anew is back.
constexpr double kSaveSeconds = 5;

bool IsUsable(const LayerProfile& layer) {
  return std::isfinite(layer.forward_seconds) && layer.forward_seconds >= 0 &&
         std::isfinite(layer.backward_seconds) && layer.backward_seconds >= 0;
}

// A folder that cannot be listed or read now. Of a job that has run the rights were good. A
// checkpoint of another job that is broken stays so.
bool IsOfTheStorage(const absl::Status& status, bool own, bool has_run) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         (absl::IsDataLoss(status) && own) || (absl::IsPermissionDenied(status) && has_run);
}

}  // namespace

void JobTransition::On(const JobOpened& event) {
  if (state_.activity == Activity::kEnded) return Stale();
  state_.term = event.term;
  if (event.restarted) state_.snapshots.opened_step = state_.furthest_step;
  if (event.restarted && (event.hold || state_.phase == JobPhase::kHeld)) {
    return Hold("interrupted; it goes on when it is resumed");
  }
  if (event.restarted && state_.phase != JobPhase::kSubmitted) {
    state_.slots.clear();
    Recover(absl::StrCat("the coordinator was restarted (term ", event.term, ")"));
    return;
  }
  if (!event.restarted) Record(JobRecord::Kind::kState, "accepted");
  if (spec().resume.job.empty()) return WaitForStages();
  Search(/*own=*/false);
}

void JobTransition::Search(bool own) {
  if (own && Writes(state_)) return BackToStart();  // it has none
  state_.origin.searches_own = own;
  BeginOperation(Activity::kFindCheckpoint, state_.limits.effect_deadline_seconds);
  actions_.push_back(SearchCheckpoint{FenceOf(state_), own ? state_.job->id : spec().resume.job,
                                      own ? -1 : state_.origin.resume_step});
}

void JobTransition::On(const CheckpointSearched& event) {
  if (!Expects(Activity::kFindCheckpoint, event.fence)) return;
  for (const std::string& folder : event.quarantined) {
    Record(JobRecord::Kind::kRecovery, absl::StrCat("a broken checkpoint was set aside: ", folder));
  }
  if (event.found.ok()) {
    TakeManifest(*event.found);
    return;
  }
  if (IsOfTheStorage(event.found.status(), state_.origin.searches_own, HasRun(state_))) {
    return StorageFailed(TextAt(event.found.status().ToString(), Place(state_)));
  }
  if (!absl::IsNotFound(event.found.status())) {
    return Fail(AnnotateAt(event.found.status(), Place(state_)));
  }
  if (!state_.origin.searches_own) {
    return Fail(Annotate(event.found.status(), absl::StrCat("resume_job=", spec().resume.job)));
  }
  if (state_.checkpoints.last.step >= 0 && !event.has_folder) {
    return Recover(
        TextAt(absl::StrCat("the checkpoint of step ", state_.checkpoints.last.step,
                            " was there, and now the job has no folder; is the storage mounted?"),
               Place(state_)));
  }
  state_.checkpoints.last.step = -1;
  BackToStart();
}

// The mini-batches of lines that are written stay so.
void JobTransition::BackToStart() {
  if (!spec().resume.job.empty()) return Search(/*own=*/false);
  if (!Writes(state_)) TakeTrainState(state_, TrainState{});
  state_.origin.applied_steps = 0;
  state_.source = {};
  WaitForStages();
}

void TakeTrainState(JobState& state, const TrainState& train) {
  state.step = train.step;
  state.results.skipped_steps = train.skipped_steps;
  state.optimizer_start = train.optimizer_start;
  state.nonfinite.steps = train.consecutive_nonfinite;
  const auto nonfinite = static_cast<uint64_t>(train.consecutive_nonfinite);
  if (nonfinite == 0) state.nonfinite.since = 0;
  // Steps without a target that counts may stand between: where it began is known to the journal
  // alone.
  if (nonfinite > 0 && (state.nonfinite.since == 0 || state.nonfinite.since > train.step)) {
    state.nonfinite.since = train.step - nonfinite + 1;
  }
  state.results.loss = train.last_loss;
  state.results.has_loss = train.step > train.skipped_steps || nonfinite > 0;
  state.furthest_step = std::max(state.furthest_step, state.step);
}

void JobTransition::TakeManifest(const FoundCheckpoint& found) {
  const Manifest& manifest = found.manifest;
  const bool own = found.ref.job == state_.job->id;
  if (absl::Status status = CheckResume(*state_.job, manifest, own); !status.ok()) {
    return Fail(status);
  }
  state_.source = {.folder = found.ref.folder,
                   .fresh_optimizer = !own && (spec().resume.fresh_optimizer || Writes(state_))};
  if (Writes(state_)) {  // the steps, the loss and the data are of the other job
    NoteResumed(found.ref);
    return WaitForStages();
  }
  // Adapters go on with the weights that they were trained with.
  if (state_.found.weights.sha256.empty()) state_.found.weights.sha256 = manifest.base_sha256;
  TakeTrainState(state_, manifest.state);
  const uint64_t applied = state_.step - state_.results.skipped_steps;
  if (state_.source.fresh_optimizer) state_.optimizer_start = applied;
  if (own) {
    state_.checkpoints.last = LastCheckpointOf(found.ref, manifest.shards);
    if (state_.step >=
        LastStep(
            state_)) {  // all is done but the export, which needs no stage and may wait for room
      for (const StageSlot& slot : state_.slots) {
        actions_.push_back(SendRelease{slot.stage, FenceOf(state_)});
      }
      ReleaseLeft();
      state_.slots.clear();
      Enter(JobPhase::kFinishing, state_.reached.text);
      return Finish();
    }
  } else {
    state_.origin.data_sha256 = manifest.dataset_sha256;
    state_.origin.applied_steps = applied;
    NoteResumed(found.ref);
  }
  WaitForStages();
}

void JobTransition::NoteResumed(const CheckpointRef& ref) {
  if (state_.origin.resume_step >= 0) return;
  state_.origin.resume_step = static_cast<int64_t>(ref.step);
  Record(JobRecord::Kind::kState,
         absl::StrCat(Writes(state_) ? "writes with" : "begins at",
                      " the newest checkpoint of job ", ref.job, ", step ", ref.step));
}

// Stages that were left aside for want of the folder are tried again after a while: somebody may
// have mounted it. How long a job does without others goes on meanwhile, or it would never end.
void JobTransition::WaitForStages() {
  Rest(Activity::kWaitStages);
  // Jobs that never ran wait as long as they are only queued; see StagesShort.
  const bool limited = state_.phase == JobPhase::kRecovering && HasRun(state_);
  JobStages& stages = state_.stages;
  if (stages.unfit.empty()) stages.unfit_since_seconds = 0;
  if (!stages.unfit.empty() && stages.unfit_since_seconds == 0) {
    stages.unfit_since_seconds = now_.seconds;
  }
  const double since = stages.unfit_since_seconds > 0 ? stages.unfit_since_seconds : now_.seconds;
  stages.give_up_seconds = limited ? since + spec().pipeline.replacement_timeout_seconds : 0;
  SetWaitDeadline(state_, now_.seconds);
}

void SetWaitDeadline(JobState& state, double now) {
  double& deadline = state.operation.deadline_seconds;
  deadline = state.stages.give_up_seconds;
  if (deadline == 0) return;
  if (!state.stages.unfit.empty()) deadline = std::min(deadline, now + kTryUnfitSeconds);
  if (MaySave(state, now)) deadline = std::min(deadline, now + kSaveSeconds);
}

void JobTransition::On(const StagesShort& event) {
  if (state_.activity != Activity::kWaitStages) return Stale();
  const auto count = [](int n) { return absl::StrCat(n, n == 1 ? " stage" : " stages"); };
  std::string message = absl::StrCat("waits for ", count(event.needed), ", ", event.ready,
                                     event.ready == 1 ? " is ready, " : " are ready, ", event.alive,
                                     event.alive == 1 ? " is alive" : " are alive");
  if (!state_.stages.unfit.empty() || !event.passed_over.empty()) {
    absl::StrAppend(&message, ", ", UnfitText(state_, event.passed_over));
  } else if (event.alive >= event.needed) {
    absl::StrAppend(&message,
                    ", the others work for other jobs, are about to end or do not answer");
  }
  state_.stages.ready_count = event.ready;
  state_.stages.ready = event.stages;
  Enter(state_.phase, message);
  double& deadline = state_.operation.deadline_seconds;
  if (HasRun(state_) && MaySave(state_, now_.seconds) && deadline > 0) {
    deadline = std::min(deadline, now_.seconds + kSaveSeconds);
  }
  if (HasRun(state_)) return;
  // Time runs only while the fleet itself is too small, not while the job is queued behind others.
  if (event.alive >= event.needed) {
    deadline = 0;
  } else if (deadline == 0) {
    deadline = now_.seconds + spec().pipeline.replacement_timeout_seconds;
  }
}

void JobTransition::On(const StagesOffered& event) {
  if (state_.activity != Activity::kWaitStages || event.stages.empty()) return Stale();
  const int offered = static_cast<int>(event.stages.size());
  int& wanted = state_.stages.wanted;
  const bool fewer = wanted == 0 || state_.stages.accepts_fewer;
  const bool least = fewer && offered >= LeastStages(state_) && (wanted == 0 || offered < wanted);
  if (offered != wanted && !least) return Stale();
  if (wanted > 0 && offered < wanted) {
    Record(JobRecord::Kind::kRecovery,
           absl::StrCat("continues with ", offered, " of ", wanted, " stages"));
  }
  wanted = offered;
  state_.slots.clear();
  for (const StageRegistration& stage : event.stages) {
    StageSlot slot;
    slot.stage = stage;
    state_.slots.push_back(std::move(slot));
  }
  if (spec().pipeline.mixed_devices) {  // the same layers on the same devices after a recovery
    std::sort(state_.slots.begin(), state_.slots.end(),
              [](const StageSlot& a, const StageSlot& b) { return a.stage.name < b.stage.name; });
  }
  for (int k = 0; k < offered; ++k) state_.slots[k].place = k;
  if (MayHoldSnapshots(state_) && !std::exchange(state_.snapshots.asked, true))
    return AskForSnapshots();
  Enter(JobPhase::kPlanned, event.passed_over.empty() ? "" : UnfitText(state_, event.passed_over));
  PlaceStages();
}

void JobTransition::PlaceStages() {
  // A profile measures training, which a job with `write` has no memory for.
  const bool measure = spec().pipeline.partition.kind == PartitionSpec::Kind::kAuto &&
                       state_.slots.size() > 1 && !Writes(state_);
  if (!measure || std::exchange(state_.profile_tried, true)) return StartPlanning();
  BeginOperation(Activity::kProfile, state_.limits.profile_deadline_seconds);
  actions_.push_back(SendProfile{state_.slots[0].stage, FenceOf(state_)});
}

void JobTransition::On(const Profiled& event) {
  if (!Expects(Activity::kProfile, event.fence)) return;
  absl::Status status = event.profile.status();
  if (status.ok() && static_cast<int>(event.profile->size()) != LayersOf(state_)) {
    status = absl::InternalError(absl::StrCat("the profile has ", event.profile->size(),
                                              " layers, the model ", LayersOf(state_)));
  }
  if (status.ok() && !std::all_of(event.profile->begin(), event.profile->end(), IsUsable)) {
    status = absl::InternalError("the profile has times that are negative or not finite");
  }
  if (status.ok()) {
    state_.profile = *event.profile;
  } else {
    Record(JobRecord::Kind::kState,
           absl::StrCat("no profile, costs come from the cost model: ", StageText(state_, 0), ": ",
                        std::string(status.message())));
  }
  StartPlanning();
}

void JobTransition::StartPlanning() {
  BeginOperation(Activity::kPlan, state_.limits.effect_deadline_seconds);
  MakeJobPlan plan{FenceOf(state_), state_.job, {}, state_.profile};
  for (const StageSlot& slot : state_.slots) {
    const int64_t limit = slot.stage.memory_limit_bytes;
    int64_t& smallest = plan.assumptions.stage_memory_limit_bytes;
    if (limit > 0) smallest = smallest == 0 ? limit : std::min(smallest, limit);
    plan.assumptions.cards.push_back(slot.stage.card);
    plan.assumptions.hosts.push_back(slot.stage.host);
    plan.assumptions.kernels.push_back(KernelsOf(slot.stage));
  }
  actions_.push_back(std::move(plan));
}

void JobTransition::On(const Planned& event) {
  if (!Expects(Activity::kPlan, event.fence)) return;
  const int stages = static_cast<int>(state_.slots.size());
  absl::Status status = event.plan.status();
  if (status.ok() && event.plan->partition.stages() != stages) {
    status = absl::InternalError(
        absl::StrCat("made for ", event.plan->partition.stages(), " stages, not ", stages));
  }
  if (!status.ok()) return Fail(AnnotateAt(status, Place(state_)));
  for (int k = 0; k < stages; ++k) {
    state_.slots[k].cells = event.plan->partition.LayersOf(k, LayersOf(state_));
  }
  state_.results.forecast_step_seconds = event.plan->step_seconds;
  state_.results.bubble_ideal = event.plan->bubble_ideal;
  Enter(JobPhase::kLoading, "");
  AskForFolder();
}

namespace {

Partition PartitionOf(const JobState& state) {
  std::map<int, int> stages;  // by first layer of a cell
  for (size_t k = 0; k < state.slots.size(); ++k) {
    for (const LayerRange& cell : state.slots[k].cells) stages[cell.first] = static_cast<int>(k);
  }
  Partition partition;
  for (const auto& [first, stage] : stages) {
    partition.first_layers.push_back(first);
    partition.placement.push_back(stage);
  }
  const bool one_each = stages.size() == state.slots.size() && std::ranges::is_sorted(partition.placement);
  if (one_each) partition.placement.clear();
  return partition;
}

std::vector<CellNeighbours> NeighboursOf(const JobState& state, const Partition& partition,
                                         int stage) {
  std::vector<CellNeighbours> all;
  for (const int cell : partition.CellsOfStage(stage)) {
    CellNeighbours& neighbours = all.emplace_back();
    const auto slot_of = [&](int other) -> const StageSlot& {
      return state.slots[static_cast<size_t>(StageOf(partition.placement, other))];
    };
    if (cell > 0) neighbours.upstream_name = slot_of(cell - 1).stage.name;
    if (cell + 1 < partition.cells()) {
      neighbours.downstream_address = slot_of(cell + 1).stage.address;
    }
  }
  return all;
}

}  // namespace

void JobTransition::SendLoads() {
  BeginOperation(Activity::kLoad, state_.limits.load_deadline_seconds);
  const int stages = static_cast<int>(state_.slots.size());
  LoadCommand command;
  command.fence = FenceOf(state_);
  command.spec = spec();
  command.network = NetworkOf(state_.job);
  command.checkpoint_folder = state_.source.folder;
  command.fresh_optimizer = state_.source.fresh_optimizer;
  command.expected_data = state_.found.data;
  command.probe_folder = state_.checkpoints.probe.folder;
  command.partition = PartitionOf(state_);
  for (int k = 0; k < stages; ++k) {
    command.stage = StageId(k);
    command.neighbours = NeighboursOf(state_, command.partition, k);
    command.snapshot = SnapshotPlanOf(state_, static_cast<size_t>(k));
    actions_.push_back(SendLoad{k, state_.slots[k].stage, command});
  }
}

void JobTransition::On(const Loaded& event) {
  if (!Answered(Activity::kLoad, event.fence, event.stage)) return;
  if (!event.result.ok()) {
    LoadFromSnapshotFailed(state_, event.result.status());
    const absl::Status& status = event.result.status();
    if (ClassOf(Activity::kLoad, status, HasRun(state_)) == FailureClass::kJob) {
      return OperationFailed(event.stage, status);
    }
    if (RefusedBeforeFirstRun()) return;
    return OperationFailed(
        event.stage,
        absl::Status(status.code(), absl::StrCat(status.message(), LeaveRefusersAside())));
  }
  state_.slots[event.stage].loaded = *event.result;
  // What is mounted wrongly at the start stays so: the others need not load for that.
  if (RefusedBeforeFirstRun()) return;
  if (AllAnswered()) CheckAnswers();
}

void JobTransition::FinishLoad() {
  std::vector<std::string> notes;
  const absl::Status status = CheckLoad(&state_, &notes);
  for (const std::string& note : notes) Record(JobRecord::Kind::kState, note);
  // Resumed on devices that compute other bits: its steps are not lost for that.
  if (!status.ok() && state_.just_resumed) {
    return Hold(absl::StrCat("cannot go on here: ", std::string(status.message()),
                             "; resume it where it began"));
  }
  if (!status.ok()) return Fail(status);
  state_.just_resumed = false;
  state_.failures.loads = 0;
  state_.pace = {.since_seconds = now_.seconds};
  state_.stages.accepts_fewer = false;
  state_.stages.suspects.clear();
  state_.stages.unfit_since_seconds = 0;
  state_.pending.reset();
  BeginSnapshots();
  if (Writes(state_)) {
    Enter(JobPhase::kRunning, "");
    return StartWriting();
  }
  const int64_t batch = spec().training.batch_size;
  const int64_t batches = (state_.found.data.evaluation_samples + batch - 1) / batch;
  JobEvaluation& evaluation = state_.evaluation;
  evaluation.batches = std::min(spec().evaluation.batches, batches);
  evaluation.translated_batches = 0;
  if (const auto& translate = spec().evaluation.translate; translate.has_value()) {
    evaluation.translated_batches = translate->batches == 0
                                        ? evaluation.batches
                                        : std::min(translate->batches, evaluation.batches);
  }
  // A loaded boundary was dealt with before.
  state_.evaluation.done = state_.checkpoints.done = true;
  state_.checkpoints.copy_tried = false;
  // But for an end that it may have brought, which only the journal knows, and perhaps could not be
  // told: looked at again, or the job would go on past it to other weights.
  const bool own = state_.checkpoints.last.step == static_cast<int64_t>(state_.step);
  if (spec().training.until.given() && state_.reached.step == 0 && own) {
    state_.evaluation.done = false;
  }
  Enter(JobPhase::kRunning, "");
  Continue();
}

}  // namespace stagecoach
