// From an open job to loaded stages: checkpoint search, waiting for stages, profile, plan, load.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/error_place.h"
#include "base/errors/status.h"
#include "coordinator/job/failure_class.h"
#include "coordinator/job/job_transition.h"
#include "coordinator/job/resume_check.h"
#include "coordinator/job/step_decision.h"
#include "plan/job/data_kinds.h"
#include "plan/job/epochs.h"

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
  if (event.restarted && (event.hold || state_.phase == JobPhase::kHeld))
    return Hold("interrupted; it goes on when it is resumed");
  if (event.restarted && state_.phase != JobPhase::kSubmitted) {
    state_.slots.clear();
    Recover(absl::StrCat("the coordinator was restarted (term ", event.term, ")"));
    return;
  }
  if (!event.restarted) Record(JobRecord::Kind::kState, "accepted");
  if (spec().resume.job.empty()) return WaitForStages();
  SearchResumeCheckpoint();
}

void JobTransition::SearchResumeCheckpoint() {
  state_.searches_own = false;
  BeginOperation(Activity::kFindCheckpoint, state_.limits.effect_deadline_seconds);
  actions_.push_back(SearchCheckpoint{FenceOf(state_), spec().resume.job, state_.resume_step});
}

void JobTransition::SearchOwnCheckpoint() {
  state_.searches_own = true;
  BeginOperation(Activity::kFindCheckpoint, state_.limits.effect_deadline_seconds);
  actions_.push_back(SearchCheckpoint{FenceOf(state_), state_.job->id, -1});
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
  if (IsOfTheStorage(event.found.status(), state_.searches_own, HasRun())) {
    return StorageFailed(TextAt(event.found.status().ToString(), Place()));
  }
  if (!absl::IsNotFound(event.found.status())) {
    return Fail(AnnotateAt(event.found.status(), Place()));
  }
  if (!state_.searches_own) {
    return Fail(Annotate(event.found.status(), absl::StrCat("resume_job=", spec().resume.job)));
  }
  if (state_.last_checkpoint_step >= 0 && !event.has_folder) {
    return Recover(
        TextAt(absl::StrCat("the checkpoint of step ", state_.last_checkpoint_step,
                            " was there, and now the job has no folder; is the storage mounted?"),
               Place()));
  }
  // No checkpoint of its own: back to where it started.
  state_.last_checkpoint_step = -1;
  if (!spec().resume.job.empty()) return SearchResumeCheckpoint();
  TakeTrainState(TrainState{});
  state_.applied_at_start = 0;
  state_.load_folder.clear();
  state_.fresh_optimizer = false;
  WaitForStages();
}

void JobTransition::TakeTrainState(const TrainState& train) {
  state_.step = train.step;
  state_.skipped_steps = train.skipped_steps;
  state_.optimizer_start = train.optimizer_start;
  state_.consecutive_nonfinite = train.consecutive_nonfinite;
  const auto nonfinite = static_cast<uint64_t>(train.consecutive_nonfinite);
  if (nonfinite == 0) state_.nonfinite_since = 0;
  // Steps without a target that counts may stand between: where it began is known to the journal
  // alone.
  if (nonfinite > 0 && (state_.nonfinite_since == 0 || state_.nonfinite_since > train.step)) {
    state_.nonfinite_since = train.step - nonfinite + 1;
  }
  state_.last_loss = train.last_loss;
  state_.has_loss = train.step > train.skipped_steps || nonfinite > 0;
  state_.furthest_step = std::max(state_.furthest_step, state_.step);
}

void JobTransition::TakeManifest(const FoundCheckpoint& found) {
  const Manifest& manifest = found.manifest;
  const bool own = found.ref.job == state_.job->id;
  if (absl::Status status = CheckResume(*state_.job, manifest, own); !status.ok()) {
    return Fail(status);
  }
  state_.load_folder = found.ref.folder;
  TakeTrainState(manifest.state);
  state_.fresh_optimizer = !own && spec().resume.fresh_optimizer;
  if (state_.fresh_optimizer) state_.optimizer_start = state_.step - state_.skipped_steps;
  if (own) {
    state_.last_checkpoint = found.ref;
    state_.last_checkpoint_step = static_cast<int64_t>(found.ref.step);
    state_.last_checkpoint_bytes = 0;
    for (const ShardInfo& shard : manifest.shards) state_.last_checkpoint_bytes += shard.bytes;
    if (state_.step >=
        last_step()) {  // all is done but the export, which needs no stage and may wait for room
      for (const StageSlot& slot : state_.slots) {
        actions_.push_back(SendRelease{slot.stage, FenceOf(state_)});
      }
      ReleaseLeft();
      state_.slots.clear();
      Enter(JobPhase::kFinishing, state_.reached_text);
      return Finish();
    }
  } else {
    state_.resumed_data_sha256 = manifest.dataset_sha256;
    state_.applied_at_start = state_.step - state_.skipped_steps;
    if (state_.resume_step < 0) {
      state_.resume_step = static_cast<int64_t>(found.ref.step);
      Record(JobRecord::Kind::kState, absl::StrCat("begins at the newest checkpoint of job ",
                                                   found.ref.job, ", step ", found.ref.step));
    }
  }
  WaitForStages();
}

// Stages that were left aside for want of the folder are tried again after a while: somebody may
// have mounted it. How long a job does without others goes on meanwhile, or it would never end.
void JobTransition::WaitForStages() {
  state_.activity = Activity::kWaitStages;
  state_.stall_seconds = 0;
  // Jobs that never ran wait as long as they are only queued; see StagesShort.
  const bool limited = state_.phase == JobPhase::kRecovering && HasRun();
  if (state_.unfit.empty()) state_.unfit_since_seconds = 0;
  if (!state_.unfit.empty() && state_.unfit_since_seconds == 0) {
    state_.unfit_since_seconds = now_.seconds;
  }
  const double since = state_.unfit_since_seconds > 0 ? state_.unfit_since_seconds : now_.seconds;
  state_.give_up_seconds = limited ? since + spec().pipeline.replacement_timeout_seconds : 0;
  SetWaitDeadline();
}

void JobTransition::SetWaitDeadline() {
  double& deadline = state_.deadline_seconds;
  deadline = state_.give_up_seconds;
  if (deadline == 0) return;
  if (!state_.unfit.empty()) deadline = std::min(deadline, now_.seconds + kTryUnfitSeconds);
  if (MaySave()) deadline = std::min(deadline, now_.seconds + kSaveSeconds);
}

// Last of all, as suspects, and with no other they have to answer once more.
bool JobTransition::TriesUnfitAgain() {
  if (state_.unfit.empty() || now_.seconds >= state_.give_up_seconds) return false;
  for (const StageProcess& stage : state_.unfit) state_.suspects.push_back(stage.name);
  state_.unfit.clear();
  state_.deadline_seconds = state_.give_up_seconds;
  return true;
}

void JobTransition::On(const StagesShort& event) {
  if (state_.activity != Activity::kWaitStages) return Stale();
  const auto count = [](int n) { return absl::StrCat(n, n == 1 ? " stage" : " stages"); };
  std::string message = absl::StrCat("waits for ", count(event.needed), ", ", event.ready,
                                     event.ready == 1 ? " is ready, " : " are ready, ", event.alive,
                                     event.alive == 1 ? " is alive" : " are alive");
  if (!state_.unfit.empty() || !event.passed_over.empty()) {
    absl::StrAppend(&message, ", ", UnfitText(event.passed_over));
  } else if (event.alive >= event.needed) {
    absl::StrAppend(&message,
                    ", the others work for other jobs, are about to end or do not answer");
  }
  state_.ready_stages = event.ready;
  state_.ready = event.stages;
  Enter(state_.phase, message);
  if (HasRun() && MaySave() && state_.deadline_seconds > 0) {
    state_.deadline_seconds = std::min(state_.deadline_seconds, now_.seconds + kSaveSeconds);
  }
  if (HasRun()) return;
  // Time runs only while the fleet itself is too small, not while the job is queued behind others.
  if (event.alive >= event.needed) {
    state_.deadline_seconds = 0;
  } else if (state_.deadline_seconds == 0) {
    state_.deadline_seconds = now_.seconds + spec().pipeline.replacement_timeout_seconds;
  }
}

void JobTransition::On(const StagesOffered& event) {
  if (state_.activity != Activity::kWaitStages || event.stages.empty()) return Stale();
  const int offered = static_cast<int>(event.stages.size());
  const bool fewer = state_.wanted_stages == 0 || state_.accepts_fewer;
  const bool least = fewer && offered >= LeastStages(state_) &&
                     (state_.wanted_stages == 0 || offered < state_.wanted_stages);
  if (offered != state_.wanted_stages && !least) return Stale();
  if (state_.wanted_stages > 0 && offered < state_.wanted_stages) {
    Record(JobRecord::Kind::kRecovery,
           absl::StrCat("continues with ", offered, " of ", state_.wanted_stages, " stages"));
  }
  state_.wanted_stages = offered;
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
  if (MayHoldSnapshots() && !std::exchange(state_.snapshots.asked, true)) return AskForSnapshots();
  Enter(JobPhase::kPlanned, event.passed_over.empty() ? "" : UnfitText(event.passed_over));
  PlaceStages();
}

void JobTransition::PlaceStages() {
  const bool measure =
      spec().pipeline.partition.kind == PartitionSpec::Kind::kAuto && state_.slots.size() > 1;
  if (measure && !state_.profile_tried) return StartProfile();
  StartPlanning();
}

void JobTransition::StartProfile() {
  state_.profile_tried = true;
  BeginOperation(Activity::kProfile, state_.limits.profile_deadline_seconds);
  actions_.push_back(SendProfile{state_.slots[0].stage, FenceOf(state_)});
}

void JobTransition::On(const Profiled& event) {
  if (!Expects(Activity::kProfile, event.fence)) return;
  absl::Status status = event.profile.status();
  if (status.ok() && static_cast<int>(event.profile->size()) != layers()) {
    status = absl::InternalError(
        absl::StrCat("the profile has ", event.profile->size(), " layers, the model ", layers()));
  }
  if (status.ok() && !std::all_of(event.profile->begin(), event.profile->end(), IsUsable)) {
    status = absl::InternalError("the profile has times that are negative or not finite");
  }
  if (status.ok()) {
    state_.profile = *event.profile;
  } else {
    Record(JobRecord::Kind::kState,
           absl::StrCat("no profile, costs come from the cost model: ", StageText(0), ": ",
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
  if (!status.ok()) return Fail(AnnotateAt(status, Place()));
  for (int k = 0; k < stages; ++k) {
    state_.slots[k].first_layer = event.plan->partition.first(k);
    state_.slots[k].last_layer = event.plan->partition.last(k, layers());
  }
  state_.forecast_step_seconds = event.plan->step_seconds;
  state_.bubble_ideal = event.plan->bubble_ideal;
  Enter(JobPhase::kLoading, "");
  AskForFolder();
}

void JobTransition::SendLoads() {
  BeginOperation(Activity::kLoad, state_.limits.load_deadline_seconds);
  const int stages = static_cast<int>(state_.slots.size());
  LoadCommand command;
  command.fence = FenceOf(state_);
  command.spec = spec();
  command.network = NetworkOf(state_.job);
  command.checkpoint_folder = state_.load_folder;
  command.fresh_optimizer = state_.fresh_optimizer;
  command.expected_data = state_.data;
  command.expected_weights = state_.weights;
  command.probe_folder = state_.temporary_folder;
  for (const StageSlot& slot : state_.slots) {
    command.partition.first_layers.push_back(slot.first_layer);
  }
  for (int k = 0; k < stages; ++k) {
    command.stage = StageId(k);
    command.downstream_address = k + 1 < stages ? state_.slots[k + 1].stage.address : "";
    command.upstream_name = k > 0 ? state_.slots[k - 1].stage.name : "";
    command.snapshot = SnapshotPlanOf(static_cast<size_t>(k));
    actions_.push_back(SendLoad{k, state_.slots[k].stage, command});
  }
}

void JobTransition::On(const Loaded& event) {
  if (!Answered(Activity::kLoad, event.fence, event.stage)) return;
  if (!event.result.ok()) {
    LoadFromSnapshotFailed(event.result.status());
    const absl::Status& status = event.result.status();
    if (ClassOf(Activity::kLoad, status, HasRun()) == FailureClass::kJob) {
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

std::string JobTransition::LoadedFingerprint() const {
  if (!spec().pipeline.mixed_devices) return state_.slots.front().loaded.fingerprint;
  return absl::StrJoin(state_.slots, " | ", [](std::string* out, const StageSlot& slot) {
    out->append(slot.loaded.fingerprint);
  });
}

absl::Status JobTransition::CheckFingerprints() const {
  if (spec().pipeline.mixed_devices) {
    const std::string fingerprint = LoadedFingerprint();
    if (state_.fingerprint.empty() || fingerprint == state_.fingerprint) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "the devices of a job must stay in their places: it began with \"", state_.fingerprint,
        "\", now the stages have \"", fingerprint, "\"; bring the devices back under their names"));
  }
  for (const StageSlot& slot : state_.slots) {
    const StageSlot& first = state_.slots.front();
    if (slot.loaded.fingerprint != first.loaded.fingerprint) {
      return absl::FailedPreconditionError(absl::StrCat(
          "stages of one job must compute alike: ", first.stage.name, " has fingerprint \"",
          first.loaded.fingerprint, "\", ", slot.stage.name, " has \"", slot.loaded.fingerprint,
          "\"; give the job stages of one kind, or set pipeline.mixed_devices"));
    }
    if (!state_.fingerprint.empty() && slot.loaded.fingerprint != state_.fingerprint) {
      return absl::FailedPreconditionError(absl::StrCat(
          "stages of one job must compute alike: it began with fingerprint \"", state_.fingerprint,
          "\", ", slot.stage.name, " has \"", slot.loaded.fingerprint, "\""));
    }
  }
  return absl::OkStatus();
}

absl::Status JobTransition::CheckData() {
  const StageSlot& first = state_.slots.front();
  const DatasetManifest& data = first.loaded.data;
  const auto differ = [this](const std::string& who, const std::string& a, const std::string& b) {
    return absl::FailedPreconditionError(absl::StrCat(DataFilesText(spec().data), ": ", who,
                                                      ": sha256 ", a, " and ", b,
                                                      "; use the same files everywhere"));
  };
  for (const StageSlot& slot : state_.slots) {
    const DatasetManifest& other = slot.loaded.data;
    const bool reads = !other.sha256.empty() || &slot == &state_.slots.back();
    if (!reads || other.sha256 == data.sha256) continue;
    return differ(
        absl::StrCat(first.stage.name, " and ", slot.stage.name, " read different data sets"),
        data.sha256, other.sha256);
  }
  if (!state_.data.sha256.empty() && data.sha256 != state_.data.sha256) {
    return differ("the data set changed since the job began", state_.data.sha256, data.sha256);
  }
  if (!state_.resumed_data_sha256.empty() && data.sha256 != state_.resumed_data_sha256) {
    return differ(absl::StrCat("the data set is not the one of resume_job=", spec().resume.job),
                  state_.resumed_data_sha256, data.sha256);
  }
  const bool first_time = state_.data.sha256.empty();
  state_.data = data;
  TakeFacts();
  if (first_time) NoteData();
  return absl::OkStatus();
}

// Who reads labels alone has measured nothing, and whoever lists the classes has the same ones.
void JobTransition::TakeFacts() {
  state_.facts = {};
  for (const StageSlot& slot : state_.slots) {
    const DataFacts& found = slot.loaded.facts;
    state_.held_out.Loaded(slot.loaded);
    if (!found.classes.empty()) state_.facts.classes = found.classes;
    if (found.mean.empty()) continue;
    state_.facts.mean = found.mean;
    state_.facts.deviation = found.deviation;
  }
}

// What users should know of their data, once a job. Stages that read the same find the same.
void JobTransition::NoteData() {
  std::vector<std::string> told;
  for (const StageSlot& slot : state_.slots) {
    for (const std::string& note : slot.loaded.data_notes) {
      if (std::find(told.begin(), told.end(), note) != told.end()) continue;
      told.push_back(note);
      Record(JobRecord::Kind::kState, note);
    }
  }
}

// Of a job that begins with a file of weights: all stages have read the same one.
absl::Status JobTransition::CheckWeights() {
  if (!spec().initialize.given() || Resumes()) return absl::OkStatus();
  const StageSlot& first = state_.slots.front();
  for (const StageSlot& slot : state_.slots) {
    if (slot.loaded.weights == first.loaded.weights) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "initialize.from = \"", spec().initialize.from, "\": ", first.stage.name, " and ",
        slot.stage.name, " read different files: sha256 ", first.loaded.weights.sha256, " and ",
        slot.loaded.weights.sha256, "; use the same file everywhere"));
  }
  if (state_.weights.sha256.empty()) {
    Record(JobRecord::Kind::kState,
           absl::StrCat("begins with the weights of ", spec().initialize.from));
  }
  state_.weights = first.loaded.weights;
  return absl::OkStatus();
}

// What the data set tells of a job that counts in epochs.
absl::Status JobTransition::CheckSteps() {
  RETURN_IF_ERROR(CheckEpochs(spec(), state_.data.train_samples));
  if (state_.step < last_step()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("training.epochs=", spec().training.epochs, " are ", last_step(),
                   " steps, and the job begins at step ", state_.step,
                   " already; ask for more epochs or an earlier resume_step"));
}

void JobTransition::FinishLoad() {
  absl::Status status = CheckFingerprints();
  if (status.ok()) status = CheckData();
  if (status.ok()) status = CheckWeights();
  if (status.ok()) status = CheckSteps();
  // Resumed on devices that compute other bits: its steps are not lost for that.
  if (!status.ok() && state_.just_resumed) {
    return Hold(absl::StrCat("cannot go on here: ", std::string(status.message()),
                             "; resume it where it began"));
  }
  if (!status.ok()) return Fail(status);
  state_.just_resumed = false;
  state_.fingerprint = LoadedFingerprint();
  state_.load_failures = 0;
  state_.loaded_seconds = now_.seconds;
  state_.accepts_fewer = false;
  state_.suspects.clear();
  state_.unfit_since_seconds = 0;
  state_.average_step_seconds = 0;
  state_.pending.reset();
  BeginSnapshots();
  const int64_t batch = spec().training.batch_size;
  const int64_t batches = (state_.data.evaluation_samples + batch - 1) / batch;
  state_.evaluation_batches = std::min(spec().evaluation.batches, batches);
  state_.evaluated = state_.saved = true;  // a loaded boundary was dealt with before
  // But for an end that it may have brought, which only the journal knows, and perhaps could not be
  // told: looked at again, or the job would go on past it to other weights.
  const bool own = state_.last_checkpoint_step == static_cast<int64_t>(state_.step);
  if (spec().training.until.given() && state_.reached_step == 0 && own) state_.evaluated = false;
  Enter(JobPhase::kRunning, "");
  Continue();
}

}  // namespace stagecoach
