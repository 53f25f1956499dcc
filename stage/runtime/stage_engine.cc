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
#include "stage/runtime/command_checks.h"
#include "stage/runtime/shard_tensors.h"
#include "stage/snapshot/available_memory.h"

namespace stagecoach {
namespace {

// The clock may be a test's, so a wait looks at it again after this long.
constexpr std::chrono::nanoseconds kLongestWait = std::chrono::milliseconds(50);

bool IsWriting(WorkKind work) { return work == WorkKind::kTranslate || work == WorkKind::kWrite; }

// Nobody waits for a shard beside the steps: it has the time in which nothing computes.
constexpr int kWriterNice = 19;

std::function<int64_t()> FreeMemoryOf(const StageRuntime::Options& options) {
  if (options.free_memory) return options.free_memory;
  return [] { return AvailableMemory(); };
}

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
      writer_({.file_system = parts.file_system,
               .free_bytes = FreeMemoryOf(parts.options),
               .nice = kWriterNice,
               .post = parts.options.writer_post}),
      news_(parts.clock) {
  parts_.backend->OnLinkCopyDone(parts_.link_ready);
}

absl::StatusOr<LoadResult> StageEngine::Load(LoadCommand command) {
  RETURN_IF_ERROR(parts_.mailbox->AbortOf(command.fence));
  RETURN_IF_ERROR(CheckLoad(command, loaded_.get()));
  if (loaded_ != nullptr && loaded_->command.fence == command.fence) return loaded_->result;
  if (loaded_ != nullptr) {
    EndCell(absl::AbortedError(absl::StrCat("replaced by a load of ", command.fence.ToString())));
    Drop();
  }
  BeginWork(command.fence);
  NoteInstruction("load");
  status_.Loading(command.fence, command.stage);
  const WorkWordsScope words(status_.words());
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
  status_.AtRest("ready", *loaded_);
  return loaded_->result;
}

absl::Status StageEngine::Build(LoadCommand command) {
  ASSIGN_OR_RETURN(const std::unique_ptr<SnapshotFiles> snapshot, snapshots_.Files(command));
  ASSIGN_OR_RETURN(loaded_,
                   LoadCells(std::move(command), {.backend = parts_.backend,
                                                 .connector = parts_.connector,
                                                 .file_system = parts_.file_system,
                                                 .local_shards = parts_.options.local_shards,
                                                 .snapshot = snapshot.get(),
                                                 .data_roots = parts_.options.data_roots,
                                                 .weight_files = parts_.options.weight_files,
                                                 .phases = &phases_,
                                                 .clock = parts_.clock,
                                                 .link = parts_.options.link,
                                                 .link_ready = parts_.link_ready}));
  return absl::OkStatus();
}

StageEngine::Going StageEngine::Begin(const RunCommand& command) {
  CHECK(!run_.has_value()) << "one command at a time";
  if (const absl::Status fence = CheckFence(command.fence, loaded_.get()); !fence.ok())
    return {.answer = fence};
  if (last_run_.has_value() && SameWork(last_run_->command, command)) {
    return {.answer = last_run_->report};
  }
  if (const absl::Status next = CheckRun(command, *loaded_); !next.ok()) return {.answer = next};
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
  const bool writes = IsWriting(command.work);
  if (!writes) loaded_->EndWriting();
  parts_.backend->allocator().ResetPeak();
  status_.Running(command.fence, *loaded_);
  loaded_->Hold(command.average ? LoadedCells::Weights::kAverages : LoadedCells::Weights::kLive);
  if (command.apply.has_value()) {
    RETURN_IF_ERROR(loaded_->Apply(*command.apply, *parts_.backend));
  }
  if (snapshots_.Wants(command)) {
    phases_.Enter(Phase::kCheckpoint);
    NoteInstruction("snapshot");
    snapshots_.Take(command, *loaded_);
    phases_.Enter(Phase::kOptimizer);
  }
  if (command.copy_shard) {
    phases_.Enter(Phase::kCheckpoint);
    NoteInstruction("checkpoint");
    const absl::Status copied = CopyShard(command.fence);
    run_->copied = copied.ok();
    // What fails with every checkpoint is said once.
    const bool again = std::exchange(copies_fail_, !copied.ok());
    if (!again) run_->copy_note = std::string(copied.message());
    phases_.Enter(Phase::kOptimizer);
  }
  if (writes) return BeginWriting(command);
  if (command.work != WorkKind::kNone) BeginProgram(command);
  return absl::OkStatus();
}

absl::Status StageEngine::CopyShard(const Fence& fence) {
  // No step comes behind it that a write could go beside. The job would drop what is under way.
  if (parts_.mailbox->draining()) {
    return absl::UnavailableError("the stage is shutting down: its checkpoint is written at once");
  }
  RETURN_IF_ERROR(CheckRoomForCopy(*loaded_, *parts_.backend));
  return writer_.Copy(fence,
                      absl::StrCat("stage ", loaded_->command.stage.value, ", ", fence.ToString()),
                      LayersOf(loaded_->all_cells()),
                      TrainingTensors(loaded_->all_cells(), *loaded_->optimizer), *parts_.backend);
}

bool StageEngine::WriteCopy(const WriteShardCommand& command, const ShardWriter::Done& done) {
  return command.snapshot_files.empty() && writer_.Write(command, done);
}

StepReport StageEngine::Finished(StepReport report) {
  const RunCommand& command = run_->command;
  if (command.work == WorkKind::kTrain) loaded_->undecided = command.fence.step;
  report.fence = command.fence;
  if (command.apply.has_value()) report.applied = loaded_->last_decision;
  report.shown = std::move(run_->shown);
  report.memory_peak = PeakMemory(parts_.backend->allocator().Use());
  snapshots_.Report(&report);
  report.shard_copied = run_->copied;
  report.copy_note = std::move(run_->copy_note);
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
  status_.AtRest("ready", *loaded_);
  return {.answer = std::move(report)};
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

// Only evaluations send the values of tied parameters.
absl::Status StageEngine::BeginWriting(const RunCommand& command) {
  if (loaded_->copied != loaded_->held) {
    return absl::FailedPreconditionError(absl::StrCat(
        "an evaluation with the same weights comes before texts (", command.fence.ToString(), ")"));
  }
  if (loaded_->writing == nullptr) {
    ASSIGN_OR_RETURN(loaded_->writing,
                     CellWriting::Create(*loaded_, parts_.backend, &phases_, parts_.clock));
  }
  RETURN_IF_ERROR(loaded_->writing->Begin(command));
  run_->stall = StallTimer(parts_.clock);
  return absl::OkStatus();
}

absl::StatusOr<StepReport> StageEngine::TakeReport() {
  if (loaded_->writing != nullptr) return loaded_->writing->TakeReport();
  loaded_->copied = loaded_->held;
  return loaded_->executor->TakeReport();
}

StageEngine::Going StageEngine::Advance() {
  CHECK(run_.has_value()) << "nothing runs";
  const absl::Status interruption = Interruption();
  if (!interruption.ok()) return End(interruption);
  const absl::StatusOr<Progress> progress =
      loaded_->writing != nullptr ? loaded_->writing->Advance() : loaded_->executor->Advance(1);
  if (!progress.ok()) return End(progress.status());
  status_.Position(*loaded_);
  if (*progress == Progress::kFinished) {
    absl::StatusOr<StepReport> report = TakeReport();
    return End(report.ok() ? Finished(*std::move(report)) : std::move(report));
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
        " s: ", loaded_->WaitingFor(), "; ", news_.Words(still_nanos), loaded_->Unconnected()));
  }
  return std::min(kLongestWait, std::chrono::nanoseconds(limit_nanos - still_nanos));
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
  if (loaded_->writing != nullptr) loaded_->writing->Abandon();
  snapshots_.End();
  writer_.End();
  phases_.Enter(Phase::kIdle);
  status_.AtRest("aborted", *loaded_);
}

void StageEngine::Drop() {
  writer_.End();
  loaded_.reset();
  last_run_.reset();
  last_shard_.reset();
  parts_.backend->EndCell();
  parts_.backend->allocator().ReleaseCached();
  parts_.backend->link_allocator().ReleaseCached();
  status_.Empty();
}

absl::StatusOr<ShardInfo> StageEngine::WriteShard(const WriteShardCommand& command) {
  if (!command.snapshot_files.empty()) {
    return AnnotateAt(snapshots_.Write(*parts_.file_system, command), command.fence.ToString());
  }
  RETURN_IF_ERROR(CheckFence(command.fence, loaded_.get()));
  if (last_shard_.has_value() && last_shard_->command.fence == command.fence &&
      last_shard_->command.folder == command.folder) {
    return last_shard_->info;
  }
  RETURN_IF_ERROR(CheckShard(command, *loaded_));
  writer_.DropUnused();  // other stages had no room for theirs
  BeginWork(command.fence);
  NoteInstruction("checkpoint");
  tracer_.Begin(command.fence, loaded_->command.stage);
  phases_.Enter(Phase::kCheckpoint);
  loaded_->Hold(LoadedCells::Weights::kLive);
  absl::StatusOr<ShardInfo> info = WriteTensors(*parts_.file_system, command.folder, loaded_->all_cells(),
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
  status_.Loading({}, {});
  auto profile = ProfileLayers(command.spec, *command.network, *parts_.backend, *parts_.clock,
                               [this] { return parts_.mailbox->closed(); });
  parts_.backend->EndCell();
  parts_.backend->allocator().ReleaseCached();
  status_.Empty();
  return profile;
}

StageStatus StageEngine::Status() const {
  StageStatus status = status_.Status();
  status.progress = parts_.progress->count();
  status.shard_progress = writer_.moves();
  status.phase = phases_.current();
  status.phases = phases_.Totals();
  status.memory = parts_.backend->allocator().Use();
  return status;
}

}  // namespace stagecoach
