#include "stage/runtime/stage_engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/error_place.h"
#include "base/errors/status.h"
#include "base/threads/current_work.h"
#include "checkpoint/folder_probe.h"
#include "stage/cell/layer_profile.h"
#include "stage/executor/shown_answers.h"
#include "stage/runtime/shard_tensors.h"

namespace stagecoach {
namespace {

// The clock may be a test's, so a wait looks at it again after this long.
constexpr std::chrono::nanoseconds kLongestWait = std::chrono::milliseconds(50);

bool SameWork(const RunCommand& a, const RunCommand& b) {
  return a.fence == b.fence && a.work == b.work && a.evaluation_batch == b.evaluation_batch &&
         a.average == b.average;
}

// The executor has counted its program; a step includes the decision before it.
void SetTimes(const PhaseClock::Nanos& before, const PhaseClock::Nanos& after, StepReport* report) {
  PhaseClock::Nanos nanos = after;
  int64_t total = 0;
  for (int i = 0; i < kPhases; ++i) total += nanos[i] -= before[i];
  report->phases = ToSeconds(nanos);
  report->step_seconds = static_cast<double>(total) * 1e-9;
}

}  // namespace

StageEngine::StageEngine(const Parts& parts)
    : parts_(parts),
      tracer_(parts.options.trace, parts.clock, parts.options.on_micro_batch),
      phases_(parts.clock, &tracer_),
      snapshots_(parts.options, parts.backend, parts.clock),
      news_(parts.clock) {
  status_.state = "empty";
  parts_.backend->OnLinkCopyDone(parts_.link_ready);
}

absl::Status StageEngine::CheckLoad(const LoadCommand& command) const {
  RETURN_IF_ERROR(parts_.mailbox->AbortOf(command.fence));
  if (loaded_ == nullptr || Supersedes(command.fence, loaded_->command.fence)) {
    return absl::OkStatus();
  }
  const Fence& loaded = loaded_->command.fence;
  if (command.fence.job != loaded.job || CompareIncarnation(command.fence, loaded) < 0) {
    return absl::AbortedError(absl::StrCat("load of ", command.fence.ToString(),
                                           " is older than what is loaded, ", loaded.ToString()));
  }
  RETURN_IF_ERROR(Annotate(loaded_->aborted, "load of a cell that has ended"));
  if (command.fence == loaded && command.stage == loaded_->command.stage) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("load of ", command.fence.ToString(), " as stage ",
                                         command.stage.value, ": ", loaded.ToString(),
                                         " is loaded as stage ", loaded_->command.stage.value,
                                         "; another placement needs a higher generation"));
}

absl::StatusOr<LoadResult> StageEngine::Load(LoadCommand command) {
  RETURN_IF_ERROR(CheckLoad(command));
  if (loaded_ != nullptr && loaded_->command.fence == command.fence) return loaded_->result;
  if (loaded_ != nullptr) {
    EndCell(absl::AbortedError(absl::StrCat("replaced by a load of ", command.fence.ToString())));
    Drop();
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    status_.fence = command.fence;
    status_.stage = command.stage;
  }
  BeginWork(command.fence);
  NoteInstruction("load");
  Publish("loading");
  // Before anything is read or drawn: on another disk the load would find no checkpoint, or a wrong
  // one. A full disk keeps nobody from training on.
  absl::Status folder;
  const bool asked = !command.probe_folder.empty();
  if (asked) {
    folder = AnswerFolderProbe(*parts_.file_system, command.probe_folder, command.stage.value);
    if (!folder.ok() && !absl::IsResourceExhausted(folder)) {
      Drop();
      LoadResult refused;
      refused.folder_answered = true;
      refused.folder = folder;
      return refused;
    }
  }
  const std::string where =
      absl::StrCat("load of stage ", command.stage.value, ", ", command.fence.ToString());
  absl::Status status = Build(std::move(command));
  if (status.ok()) {
    snapshots_.Begin(*loaded_);
    loaded_->result.folder_answered = asked;
    loaded_->result.folder = folder;
    status = Interruption();  // what came while loading
  }
  if (!status.ok()) {
    Drop();
    return AnnotateAt(status, where);
  }
  Publish("ready");
  return loaded_->result;
}

absl::Status StageEngine::Build(LoadCommand command) {
  ASSIGN_OR_RETURN(const std::unique_ptr<SnapshotFiles> snapshot, snapshots_.Files(command));
  ASSIGN_OR_RETURN(loaded_,
                   LoadCell(std::move(command), {.backend = parts_.backend,
                                                 .connector = parts_.connector,
                                                 .file_system = parts_.file_system,
                                                 .snapshot = snapshot.get(),
                                                 .data_roots = parts_.options.data_roots,
                                                 .weight_files = parts_.options.weight_files,
                                                 .phases = &phases_,
                                                 .clock = parts_.clock,
                                                 .link = parts_.options.link,
                                                 .link_ready = parts_.link_ready}));
  return absl::OkStatus();
}

absl::Status StageEngine::CheckFence(const Fence& fence) const {
  if (loaded_ == nullptr) {
    return absl::AbortedError(absl::StrCat("nothing is loaded here (", fence.ToString(), ")"));
  }
  const Fence& loaded = loaded_->command.fence;
  if (fence.job == loaded.job && CompareIncarnation(fence, loaded) < 0) {
    return absl::AbortedError(
        absl::StrCat(fence.ToString(), " is older than what is loaded, ", loaded.ToString()));
  }
  if (fence.job != loaded.job || CompareIncarnation(fence, loaded) > 0) {
    return absl::AbortedError(
        absl::StrCat(fence.ToString(), " is not loaded here, ", loaded.ToString(), " is"));
  }
  return Annotate(loaded_->aborted, "the cell has ended");
}

absl::StatusOr<bool> StageEngine::IsNew(const ApplyDecision& decision) const {
  if (decision.step == loaded_->next_step && loaded_->undecided == decision.step) return true;
  if (decision.step + 1 == loaded_->next_step && loaded_->last_decision == decision) return false;
  return absl::FailedPreconditionError(absl::StrCat(
      "decision about step ", decision.step, ": stage ", loaded_->command.stage.value, " has ",
      loaded_->undecided.has_value()
          ? absl::StrCat("gradients of step ", *loaded_->undecided)
          : absl::StrCat("no gradients, and has decided all before step ", loaded_->next_step),
      decision.step + 1 == loaded_->next_step ? " otherwise" : ""));
}

absl::Status StageEngine::CheckRun(const RunCommand& command) const {
  if (command.average && (command.work != WorkKind::kEvaluate || command.apply.has_value() ||
                          loaded_->command.spec.training.average.decay == 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "average: only evaluations of a job that keeps averages (", command.fence.ToString(), ")"));
  }
  uint64_t next = loaded_->next_step;
  bool undecided = loaded_->undecided.has_value();
  if (command.apply.has_value()) {
    ASSIGN_OR_RETURN(const bool is_new, IsNew(*command.apply));
    if (is_new) {
      ++next;
      undecided = false;
    }
  }
  if (command.fence.step != next) {
    return absl::FailedPreconditionError(absl::StrCat(
        "step ", command.fence.step, " asked for, step ", next, " is the next one on stage ",
        loaded_->command.stage.value, " (", command.fence.ToString(), ")"));
  }
  if (command.work == WorkKind::kTrain && undecided) {
    return absl::FailedPreconditionError(
        absl::StrCat("step ", next, " has run on stage ", loaded_->command.stage.value,
                     " and waits for its decision; to run it again, load again (",
                     command.fence.ToString(), ")"));
  }
  return absl::OkStatus();
}

StageEngine::Going StageEngine::Begin(const RunCommand& command) {
  CHECK(!run_.has_value()) << "one command at a time";
  if (const absl::Status fence = CheckFence(command.fence); !fence.ok()) return {.answer = fence};
  if (last_run_.has_value() && SameWork(last_run_->command, command)) {
    return {.answer = last_run_->report};
  }
  if (const absl::Status next = CheckRun(command); !next.ok()) return {.answer = next};
  tracer_.Begin(command.fence, loaded_->command.stage);
  BeginWork(command.fence);
  // Getting ready counts as the decision that comes first.
  run_ = CurrentRun{command, phases_.Enter(Phase::kOptimizer), StallTimer(parts_.clock)};
  const absl::Status started = Start(command);
  if (!started.ok()) return End(started);
  if (command.work == WorkKind::kNone) return End(Finished(StepReport()));
  return {};
}

absl::Status StageEngine::Start(const RunCommand& command) {
  parts_.backend->allocator().ResetPeak();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    status_.fence = command.fence;
  }
  Publish("running");
  loaded_->Hold(command.average ? LoadedCell::Weights::kAverages : LoadedCell::Weights::kLive);
  if (command.apply.has_value()) RETURN_IF_ERROR(Apply(*command.apply));
  if (snapshots_.Wants(command)) {
    phases_.Enter(Phase::kCheckpoint);
    NoteInstruction("snapshot");
    snapshots_.Take(command, *loaded_);
    phases_.Enter(Phase::kOptimizer);
  }
  if (command.work != WorkKind::kNone) BeginProgram(command);
  return absl::OkStatus();
}

StepReport StageEngine::Finished(StepReport report) {
  const RunCommand& command = run_->command;
  if (command.work == WorkKind::kTrain) loaded_->undecided = command.fence.step;
  report.fence = command.fence;
  if (command.apply.has_value()) report.applied = loaded_->last_decision;
  report.shown = std::move(run_->shown);
  report.memory_peak = PeakMemory(parts_.backend->allocator().Use());
  snapshots_.Report(&report);
  return report;
}

StageEngine::Going StageEngine::End(absl::StatusOr<StepReport> report) {
  const CurrentRun run = *std::exchange(run_, std::nullopt);
  phases_.Resolve({});  // of a step that failed; the tracer still listens
  const PhaseClock::Nanos after = phases_.Enter(Phase::kIdle);
  tracer_.End();
  if (!report.ok()) {
    const absl::Status reason = WithFault(report.status());
    FailCell(reason);
    return {.answer = reason};
  }
  SetTimes(run.before, after, &*report);
  last_run_ = LastRun{run.command, *report};
  Publish("ready");
  return {.answer = std::move(report)};
}

absl::Status StageEngine::Apply(const ApplyDecision& decision) {
  ASSIGN_OR_RETURN(const bool is_new, IsNew(decision));
  if (!is_new) return absl::OkStatus();
  NoteInstruction("apply");
  if (decision.apply) {
    // Before the update, whose averages follow the states too.
    RETURN_IF_ERROR(loaded_->cell->CommitStates());
    loaded_->optimizer->Apply(decision.optimizer_steps, decision.learning_rate,
                              decision.gradient_scale);
    loaded_->copied = LoadedCell::Weights::kStale;
  }
  loaded_->cell->ZeroGradients();
  RETURN_IF_ERROR(
      AnnotateAt(parts_.backend->Synchronize(),
                 absl::StrCat("stage ", loaded_->command.stage.value, ", job ",
                              loaded_->command.fence.job, ", apply of step ", decision.step)));
  loaded_->undecided.reset();
  loaded_->last_decision = decision;
  loaded_->next_step = decision.step + 1;
  return absl::OkStatus();
}

void StageEngine::BeginProgram(const RunCommand& command) {
  const bool training = command.work == WorkKind::kTrain;
  loaded_->executor->BeginStep(
      {.fence = command.fence,
       .training = training,
       .evaluation_batch = command.evaluation_batch,
       .program = training ? &loaded_->training : &loaded_->EvaluationProgram(),
       .loss_scale = loaded_->loss_scale(),
       .observer = GatherAnswers(
           ShownSamples(command, loaded_->command.spec.training.batch_size, loaded_->network()),
           *parts_.backend, &run_->shown)});
  run_->stall = StallTimer(parts_.clock);
}

StageEngine::Going StageEngine::Advance() {
  CHECK(run_.has_value()) << "nothing runs";
  const absl::Status interruption = Interruption();
  if (!interruption.ok()) return End(interruption);
  const absl::StatusOr<Progress> progress = loaded_->executor->Advance(1);
  if (!progress.ok()) return End(progress.status());
  PublishPosition();
  if (*progress == Progress::kFinished) {
    loaded_->copied = loaded_->held;
    return End(Finished(loaded_->executor->TakeReport()));
  }
  if (*progress == Progress::kAdvanced) {
    TickProgress();
    return {};
  }
  parts_.backend->TellProgress();  // its device may be behind
  const absl::StatusOr<std::chrono::nanoseconds> wait = Wait();
  if (!wait.ok()) return End(wait.status());
  return {.wait = *wait};
}

// The neighbour may compute for as long as it likes, or wait itself for one that does: what counts
// is that somebody of the job gets on. One that is dead or stopped breaks its link. Of the others
// one hears with the lease only: while the coordinator is silent nobody knows whether they get on.
absl::StatusOr<std::chrono::nanoseconds> StageEngine::Wait() {
  const double timeout = parts_.options.progress_timeout_seconds;
  int64_t limit_nanos = news_.PatienceNanos(timeout);
  const int64_t still_nanos = run_->stall.StillNanos(parts_.progress->count() + news_.moves());
  // Where the whole machine stood still between the two looks, the coordinator was not heard
  // meanwhile either.
  if (still_nanos >= limit_nanos) limit_nanos = std::max(limit_nanos, news_.PatienceNanos(timeout));
  if (still_nanos >= limit_nanos) {
    return absl::DeadlineExceededError(absl::StrCat(
        "no operation done for ", static_cast<double>(limit_nanos) * 1e-9,
        " s: ", loaded_->executor->WaitingFor(), "; ", news_.Words(still_nanos), Unconnected()));
  }
  return std::min(kLongestWait, std::chrono::nanoseconds(limit_nanos - still_nanos));
}

std::string StageEngine::Unconnected() const {
  const int stage = loaded_->command.stage.value;
  const Link* const up = loaded_->upstream.get();
  const Link* const down = loaded_->downstream.get();
  std::string text;
  if (up != nullptr && !up->statistics().connected) {
    absl::StrAppend(&text, "; stage ", stage - 1, " has not dialled this one");
  }
  if (down != nullptr && !down->statistics().connected) {
    absl::StrAppend(&text, "; stage ", stage + 1, " at ", loaded_->command.downstream_address,
                    " has not answered the link; can this machine reach it?");
  }
  return text;
}

absl::Status StageEngine::Interruption() const {
  const absl::Status reason = parts_.mailbox->Interruption(loaded_->command.fence);
  if (reason.ok()) return reason;
  return AnnotateAt(reason, absl::StrCat("stage ", loaded_->command.stage.value, ", ",
                                         loaded_->command.fence.ToString()));
}

void StageEngine::HandleAbort() {
  if (loaded_ == nullptr || !loaded_->aborted.ok()) return;
  const absl::Status reason = parts_.mailbox->AbortOf(loaded_->command.fence);
  if (!reason.ok()) EndCell(reason);
}

absl::Status StageEngine::WithFault(const absl::Status& status) const {
  const absl::Status fault = parts_.backend->Fault();
  if (fault.ok() || absl::StrContains(status.message(), fault.message())) return status;
  return absl::Status(fault.code(), absl::StrCat(fault.message(), "; ", status.message()));
}

void StageEngine::EndCell(const absl::Status& reason) {
  FailCell(reason);
  CloseLinks();
}

void StageEngine::CloseLinks() {
  if (loaded_ != nullptr && !loaded_->aborted.ok()) loaded_->CloseLinks(loaded_->aborted);
}

void StageEngine::FailCell(const absl::Status& reason) {
  if (!loaded_->aborted.ok()) return;
  // Its own text: the links are closed with it behind the answer, which another thread may be
  // through with by then.
  loaded_->aborted = absl::Status(reason.code(), reason.message());
  loaded_->executor->Abandon();
  snapshots_.End();
  phases_.Enter(Phase::kIdle);
  Publish("aborted");
}

void StageEngine::Drop() {
  loaded_.reset();
  last_run_.reset();
  last_shard_.reset();
  parts_.backend->EndCell();
  parts_.backend->allocator().ReleaseCached();
  parts_.backend->link_allocator().ReleaseCached();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    status_ = StageStatus{};
  }
  Publish("empty");
}

absl::StatusOr<ShardInfo> StageEngine::WriteShard(const WriteShardCommand& command) {
  if (!command.snapshot_files.empty()) {
    return AnnotateAt(snapshots_.Write(*parts_.file_system, command), command.fence.ToString());
  }
  RETURN_IF_ERROR(CheckFence(command.fence));
  if (last_shard_.has_value() && last_shard_->command.fence == command.fence &&
      last_shard_->command.folder == command.folder) {
    return last_shard_->info;
  }
  if (command.fence.step != loaded_->next_step) {
    return absl::FailedPreconditionError(absl::StrCat(
        "shard of step ", command.fence.step, " asked for, stage ", loaded_->command.stage.value,
        " is at step ", loaded_->next_step, " (", command.fence.ToString(), ")"));
  }
  BeginWork(command.fence);
  NoteInstruction("checkpoint");
  tracer_.Begin(command.fence, loaded_->command.stage);
  phases_.Enter(Phase::kCheckpoint);
  loaded_->Hold(LoadedCell::Weights::kLive);
  absl::StatusOr<ShardInfo> info = WriteTensors(*parts_.file_system, command.folder, *loaded_->cell,
                                                *loaded_->optimizer, *parts_.backend);
  phases_.Enter(Phase::kIdle);
  tracer_.End();
  if (!info.ok()) {
    return AnnotateAt(info.status(), absl::StrCat("stage ", loaded_->command.stage.value, ", ",
                                                  command.fence.ToString()));
  }
  last_shard_ = LastShard{command, *info};
  return info;
}

absl::Status StageEngine::Release(const Fence& fence) {
  const bool loaded = loaded_ != nullptr && loaded_->command.fence.job == fence.job;
  if (loaded && CompareIncarnation(fence, loaded_->command.fence) < 0) {
    return absl::AbortedError(absl::StrCat("release of ", fence.ToString(), ": ",
                                           loaded_->command.fence.ToString(), " is loaded"));
  }
  snapshots_.Clear(fence.job);
  if (!loaded) return absl::OkStatus();
  EndCell(absl::CancelledError("the cell was released"));
  Drop();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<LayerProfile>> StageEngine::Profile(const ProfileCommand& command) {
  if (loaded_ != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("cannot profile while ",
                                                      loaded_->command.fence.ToString(),
                                                      " is loaded; release it first"));
  }
  Publish("loading");
  auto profile = ProfileLayers(command.spec, *command.network, *parts_.backend, *parts_.clock,
                               [this] { return parts_.mailbox->closed(); });
  parts_.backend->EndCell();
  parts_.backend->allocator().ReleaseCached();
  Publish("empty");
  return profile;
}

void StageEngine::Publish(const char* state) {
  std::lock_guard<std::mutex> lock(mutex_);
  status_.state = state;
  CopyPositionLocked();
}

void StageEngine::PublishPosition() {
  std::lock_guard<std::mutex> lock(mutex_);
  CopyPositionLocked();
}

void StageEngine::CopyPositionLocked() {
  if (loaded_ == nullptr) return;
  const StageExecutor& executor = *loaded_->executor;
  status_.stage = loaded_->command.stage;
  if (status_.state != "running") {
    status_.fence = loaded_->command.fence;
    status_.fence.step = loaded_->next_step;
  }
  status_.bad_records = loaded_->data == nullptr ? 0 : loaded_->data->bad_records();
  status_.micro_batch = executor.current_micro_batch();
  status_.waiting_for = executor.WaitingFor();
  if (loaded_->upstream != nullptr) status_.upstream = loaded_->upstream->statistics();
  if (loaded_->downstream != nullptr) status_.downstream = loaded_->downstream->statistics();
  // What the executor dropped was stale as well; it does not tell the links apart.
  auto& counted = status_.upstream.has_value() ? status_.upstream : status_.downstream;
  if (counted.has_value()) counted->stale_frames += executor.stale_messages();
}

StageStatus StageEngine::Status() const {
  StageStatus status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    status = status_;
  }
  status.progress = parts_.progress->count();
  status.phase = phases_.current();
  status.phases = phases_.Totals();
  status.memory = parts_.backend->allocator().Use();
  return status;
}

}  // namespace stagecoach
