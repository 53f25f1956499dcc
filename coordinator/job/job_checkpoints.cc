// The two-phase checkpoint at a step boundary.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/error_place.h"
#include "base/errors/status.h"
#include "coordinator/job/job_transition.h"
#include "network/passes/lora.h"
#include "network/stored.h"
#include "plan/costs/training_state.h"
#include "plan/job/optimizer_slots.h"

namespace stagecoach {
namespace {

// Of a checkpoint by time: of the time that a job trains, and of the steps that may be lost.
constexpr double kDiskShare = 0.035;
constexpr double kLeastTrainSeconds = 180;
// Of a disk, where no checkpoint was measured yet.
constexpr double kDiskBytesPerSecond = 100e6;

std::vector<ExpectedTensor> ExpectedTensors(const JobState& state) {
  const TrainingSpec& training = state.job->spec.training;
  std::vector<ExpectedTensor> expected;
  const auto expect = [&](const std::string& name, const Shape& shape) {
    expected.push_back({name, DType::kF32, shape});
  };
  for (const NetworkLayer& layer : state.job->network.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (!IsStored(parameter)) continue;
      expect(parameter.name, parameter.shape);
      if (!parameter.trained) continue;
      for (const OptimizerState& kept : TrainingStates(training, parameter.shape)) {
        expect(SlotTensorName(kept.slot, parameter.name), kept.shape);
      }
    }
    for (const StateSpec& kept : layer.states) {
      expect(kept.name, kept.shape);
      if (training.average.decay > 0) expect(SlotTensorName(kAverageSlot, kept.name), kept.shape);
    }
  }
  return expected;
}

std::vector<ShardInfo> WrittenShards(const JobState& state) {
  if (state.snapshots.save.on) return state.snapshots.save.chosen->manifest.shards;
  std::vector<ShardInfo> shards;
  for (const StageSlot& slot : state.slots) shards.push_back(slot.shard);
  return shards;
}

Manifest WithShards(Manifest manifest, std::vector<ShardInfo> shards) {
  manifest.shards = std::move(shards);
  std::sort(manifest.shards.begin(), manifest.shards.end(),
            [](const ShardInfo& a, const ShardInfo& b) { return a.file < b.file; });
  return manifest;
}

}  // namespace

// Full, away, read-only, broken: whoever runs the cluster mends it, and the job is none the worse.
// That it ends with its result unwritten would be.
bool IsOfTheDisk(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kNotFound:
      return true;
    default:
      return false;
  }
}

void JobTransition::On(const SaveRequested&) {
  state_.checkpoints.requested = true;
  if (state_.activity == Activity::kWaitStages && MaySave(state_, now_.seconds)) StartSave();
}

bool CheckpointDue(const JobState& state) {
  // Of two the second would wait for the first.
  if (state.checkpoints.writing.beside.has_value()) return false;
  if (!state.job->spec.checkpoint.automatic()) return false;
  double seconds = state.checkpoints.seconds;
  if (seconds <= 0) seconds = static_cast<double>(CheckpointBytes(state)) / kDiskBytesPerSecond;
  return state.checkpoints.unsaved_train_seconds >=
         std::max(kLeastTrainSeconds, seconds / kDiskShare);
}

int64_t CheckpointBytes(const JobState& state) {
  return TrainingStateBytes(state.job->network, state.job->spec.training,
                            {{0, LayersOf(state)}});
}

void JobTransition::StartCheckpoint() {
  // One that nobody asked for leaves room for the last one, which the job must not end without.
  const bool unasked =
      !state_.checkpoints.requested && state_.step < LastStep(state_) &&
      (state_.snapshots.save.on ? !GivesUp(state_, now_.seconds) : CheckpointDue(state_));
  state_.checkpoints.requested = false;
  state_.checkpoints.writing = {.started_seconds = now_.seconds, .spares_room = unasked};
  EnterWrite(Activity::kBeginCheckpoint);
  actions_.push_back(BeginCheckpoint{FenceOf(state_), (unasked ? 2 : 1) * CheckpointBytes(state_)});
}

void JobTransition::On(const CheckpointBegun& event) {
  if (IsTerminal(state_.phase) || !ExpectsWrite(Activity::kBeginCheckpoint, event.fence)) {
    if (event.folder.ok()) actions_.push_back(AbandonCheckpoint{*event.folder});
    return;
  }
  if (!event.folder.ok()) return CheckpointFailed(event.folder.status());
  state_.checkpoints.writing.folder = *event.folder;
  EnterWrite(Activity::kWriteShards);
  if (state_.snapshots.save.on) return WriteSnapshotShards();
  const auto& beside = state_.checkpoints.writing.beside;
  WriteShardCommand command;
  command.fence = beside.has_value() ? beside->fence : FenceOf(state_);
  command.folder = state_.checkpoints.writing.folder;
  for (size_t k = 0; k < state_.slots.size(); ++k) {
    actions_.push_back(SendWriteShard{static_cast<int>(k), state_.slots[k].stage, command});
  }
}

void JobTransition::On(const ShardWritten& event) {
  if (!ShardAnswered(event)) return;
  if (event.shard.ok()) {
    state_.slots[event.stage].shard = *event.shard;
  } else if (state_.snapshots.save.on ||
             (IsOfTheDisk(event.shard.status()) && !absl::IsUnavailable(event.shard.status()))) {
    // The disk's fault: training can go on. The others' answers are awaited all the same, for the
    // folder can only go once nobody writes into it.
    if (state_.checkpoints.writing.error.ok()) {
      state_.checkpoints.writing.error =
          Annotate(event.shard.status(), StageText(state_, event.stage));
    }
  } else {
    return ShardFailed(event.stage, event.shard.status());
  }
  if (AllShardsAnswered()) FinishShards();
}

Manifest MakeManifest(const JobState& state, std::vector<ShardInfo> shards) {
  Manifest manifest;
  manifest.job = state.job->id;
  manifest.model_sha256 = state.job->model_sha256;
  manifest.state.step = state.step;
  manifest.state.seed = state.job->spec.seed;
  manifest.state.batch_size = state.job->spec.training.batch_size;
  manifest.state.micro_batches = state.job->spec.training.micro_batches;
  manifest.state.sequences_consumed =
      state.step * static_cast<uint64_t>(state.job->spec.training.batch_size);
  manifest.state.skipped_steps = state.results.skipped_steps;
  manifest.state.optimizer_start = state.optimizer_start;
  manifest.state.consecutive_nonfinite = state.nonfinite.steps;
  manifest.state.last_loss = state.results.loss;
  manifest.dataset_sha256 = state.found.data.sha256;
  manifest.dataset_bytes = state.found.data.bytes;
  if (HasBase(state.job->network)) manifest.base_sha256 = state.found.weights.sha256;
  manifest.facts = state.found.facts;
  manifest.term = state.term;
  manifest.stages = static_cast<int>(state.slots.size());
  manifest.fingerprint = state.found.fingerprint;
  return WithShards(std::move(manifest), std::move(shards));
}

void JobTransition::FinishShards() {
  const CheckpointWrite& writing = state_.checkpoints.writing;
  if (!writing.error.ok()) return CheckpointFailed(writing.error);
  EnterWrite(Activity::kCommit);
  // Whether a job ends well is known once its last checkpoint is exported; until then none goes
  // that may be better.
  const bool last = !writing.beside.has_value() && state_.step >= LastStep(state_);
  const int64_t keep = last ? kKeepAll : spec().checkpoint.keep;
  Manifest manifest = state_.snapshots.save.on ? SavedManifest(state_)
                      : writing.beside.has_value()
                          ? WithShards(writing.beside->manifest, WrittenShards(state_))
                          : MakeManifest(state_, WrittenShards(state_));
  std::vector<ExpectedTensor> expected = ExpectedTensors(state_);
  actions_.push_back(
      CommitCheckpoint{writing.beside.has_value() ? writing.beside->fence : FenceOf(state_),
                       writing.folder, std::move(manifest), std::move(expected), keep});
}

void JobTransition::On(const CheckpointCommitted& event) {
  if (!ExpectsWrite(Activity::kCommit, event.fence)) return;
  if (!event.ref.ok()) return CheckpointFailed(event.ref.status());
  JobCheckpoints& checkpoints = state_.checkpoints;
  checkpoints.writing.folder.clear();
  checkpoints.unsaved.clear();
  checkpoints.last = LastCheckpointOf(*event.ref, WrittenShards(state_));
  RecordWrite("");
  if (checkpoints.writing.beside.has_value()) {
    const bool awaited = AwaitsCheckpoint();
    checkpoints.seconds = EndBeside();
    if (awaited) Continue();
    return;
  }
  checkpoints.done = true;
  checkpoints.seconds = now_.seconds - checkpoints.writing.started_seconds;
  checkpoints.unsaved_train_seconds = 0;
  if (state_.snapshots.save.on) {
    state_.snapshots.save.tried = true;  // also where a holder was lost meanwhile
    return EndSave();
  }
  Continue();
}

void JobTransition::CheckpointFailed(const absl::Status& status) {
  RecordWrite(absl::StrCat("checkpoint at step ", StepOfWrite(), ": ", status.ToString()));
  const bool beside = state_.checkpoints.writing.beside.has_value(), awaited = AwaitsCheckpoint();
  DropCheckpoint();
  if (beside) {
    if (awaited) Continue();
    return;
  }
  state_.checkpoints.done = true;  // tried; the next one is due at the next boundary
  state_.checkpoints.unsaved_train_seconds = 0;
  if (state_.snapshots.save.on) {
    EndSave();
    state_.snapshots.save.lacked_room =
        state_.checkpoints.writing.spares_room && absl::IsResourceExhausted(status);
    return;
  }
  if (state_.step < LastStep(state_)) return Continue();
  const std::string kept =
      state_.checkpoints.last.step >= 0
          ? absl::StrCat("the one of step ", state_.checkpoints.last.step, " is kept")
          : "there is no earlier one";
  const std::string last =
      absl::StrCat("the last checkpoint, at step ", state_.step, ", could not be written; ", kept);
  if (!IsOfTheDisk(status)) return Fail(Annotate(status, last));
  const std::string why = absl::StrCat(last, ": ", status.ToString());
  Recover(absl::StrCat(why, "; it is tried until the folder of checkpoints has room and answers"));
  state_.checkpoints.unsaved = why;
}

void JobTransition::DropCheckpoint() {
  JobCheckpoints& checkpoints = state_.checkpoints;
  for (std::string* folder : {&checkpoints.writing.folder, &checkpoints.probe.folder}) {
    if (!folder->empty()) actions_.push_back(AbandonCheckpoint{std::exchange(*folder, "")});
  }
  checkpoints.writing.beside.reset();
}

uint64_t JobTransition::StepOfWrite() const {
  const auto& beside = state_.checkpoints.writing.beside;
  return beside.has_value() ? beside->fence.step : state_.step;
}

void JobTransition::RecordWrite(const std::string& error) {
  JobRecord& record = Record(JobRecord::Kind::kCheckpoint, error);
  record.step = StepOfWrite();
  record.step_seconds = now_.seconds - state_.checkpoints.writing.started_seconds;
}

}  // namespace stagecoach
