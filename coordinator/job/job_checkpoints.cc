// The two-phase checkpoint at a step boundary, and the export of the final weights.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/errors/error_place.h"
#include "base/errors/status.h"
#include "coordinator/job/job_transition.h"
#include "plan/costs/training_state.h"
#include "plan/job/optimizer_slots.h"

namespace stagecoach {
namespace {

// Of a checkpoint by time: of the time that a job trains, and of the steps that may be lost.
constexpr double kDiskShare = 0.035;
constexpr double kLeastTrainSeconds = 180;
// Of a disk, where no checkpoint was measured yet.
constexpr double kDiskBytesPerSecond = 100e6;

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

}  // namespace

void JobTransition::On(const SaveRequested&) {
  state_.save_requested = true;
  if (state_.activity == Activity::kWaitStages && MaySave()) StartSave();
}

bool JobTransition::CheckpointDue() const {
  if (!spec().checkpoint.automatic()) return false;
  double seconds = state_.checkpoint_seconds;
  if (seconds <= 0) seconds = static_cast<double>(CheckpointBytes()) / kDiskBytesPerSecond;
  return state_.unsaved_train_seconds >= std::max(kLeastTrainSeconds, seconds / kDiskShare);
}

int64_t JobTransition::CheckpointBytes() const {
  return TrainingStateBytes(state_.job->network, spec().training, 0, layers());
}

void JobTransition::StartCheckpoint() {
  // One that nobody asked for leaves room for the last one, which the job must not end without.
  const bool unasked = !state_.save_requested && state_.step < last_step() &&
                       (state_.snapshots.saving ? !GivesUp() : CheckpointDue());
  state_.snapshots.save_spares = unasked;
  state_.save_requested = false;
  state_.temporary_folder.clear();
  state_.checkpoint_error = absl::OkStatus();
  state_.checkpoint_started_seconds = now_.seconds;
  BeginOperation(Activity::kBeginCheckpoint, state_.limits.effect_deadline_seconds);
  actions_.push_back(BeginCheckpoint{FenceOf(state_), (unasked ? 2 : 1) * CheckpointBytes()});
}

void JobTransition::On(const CheckpointBegun& event) {
  if (IsTerminal(state_.phase) || !Expects(Activity::kBeginCheckpoint, event.fence)) {
    if (event.folder.ok()) actions_.push_back(AbandonCheckpoint{*event.folder});
    return;
  }
  if (!event.folder.ok()) return CheckpointFailed(event.folder.status());
  state_.temporary_folder = *event.folder;
  // A sync of what was written shows no progress while it lasts.
  BeginOperation(Activity::kWriteShards, std::max(state_.limits.load_deadline_seconds,
                                                  static_cast<double>(CheckpointBytes()) /
                                                      state_.limits.sync_bytes_per_second));
  if (state_.snapshots.saving) return WriteSnapshotShards();
  WriteShardCommand command;
  command.fence = FenceOf(state_);
  command.folder = state_.temporary_folder;
  for (size_t k = 0; k < state_.slots.size(); ++k) {
    actions_.push_back(SendWriteShard{static_cast<int>(k), state_.slots[k].stage, command});
  }
}

void JobTransition::On(const ShardWritten& event) {
  if (!Answered(Activity::kWriteShards, event.fence, event.stage)) return;
  if (event.shard.ok()) {
    state_.slots[event.stage].shard = *event.shard;
  } else if (state_.snapshots.saving ||
             (IsOfTheDisk(event.shard.status()) && !absl::IsUnavailable(event.shard.status()))) {
    // The disk's fault: training can go on. The others' answers are awaited all the same, for the
    // folder can only go once nobody writes into it.
    if (state_.checkpoint_error.ok()) {
      state_.checkpoint_error = Annotate(event.shard.status(), StageText(event.stage));
    }
  } else {
    return OperationFailed(event.stage, event.shard.status());
  }
  if (AllAnswered()) FinishShards();
}

std::vector<ExpectedTensor> JobTransition::ExpectedTensors(
    const std::vector<ShardInfo>& shards) const {
  std::set<std::string> slots;  // what one parameter has, every trained one must have
  for (const ShardInfo& shard : shards) {
    for (const ShardTensor& tensor : shard.tensors) {
      if (std::string name = SlotOfTensor(tensor.entry.name); !name.empty()) slots.insert(name);
    }
  }
  std::vector<ExpectedTensor> expected;
  for (const NetworkLayer& layer : state_.job->network.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (parameter.tied()) continue;
      expected.push_back({parameter.name, DType::kF32, parameter.shape});
      if (!parameter.trained) continue;
      for (const std::string& slot : slots) {
        expected.push_back({SlotTensorName(slot, parameter.name), DType::kF32, parameter.shape});
      }
    }
    for (const StateSpec& state : layer.states) {
      expected.push_back({state.name, DType::kF32, state.shape});
      if (slots.contains(kAverageSlot)) {
        expected.push_back({SlotTensorName(kAverageSlot, state.name), DType::kF32, state.shape});
      }
    }
  }
  return expected;
}

Manifest JobTransition::MakeManifest(std::vector<ShardInfo> shards) const {
  Manifest manifest;
  manifest.job = state_.job->id;
  manifest.model_sha256 = state_.job->model_sha256;
  manifest.state.step = state_.step;
  manifest.state.seed = spec().seed;
  manifest.state.batch_size = spec().training.batch_size;
  manifest.state.micro_batches = spec().training.micro_batches;
  manifest.state.sequences_consumed =
      state_.step * static_cast<uint64_t>(spec().training.batch_size);
  manifest.state.skipped_steps = state_.skipped_steps;
  manifest.state.optimizer_start = state_.optimizer_start;
  manifest.state.consecutive_nonfinite = state_.consecutive_nonfinite;
  manifest.state.last_loss = state_.last_loss;
  manifest.dataset_sha256 = state_.data.sha256;
  manifest.dataset_bytes = state_.data.bytes;
  manifest.facts = state_.facts;
  manifest.term = state_.term;
  manifest.stages = static_cast<int>(state_.slots.size());
  manifest.fingerprint = state_.fingerprint;
  manifest.shards = std::move(shards);
  std::sort(manifest.shards.begin(), manifest.shards.end(),
            [](const ShardInfo& a, const ShardInfo& b) { return a.file < b.file; });
  return manifest;
}

std::vector<ShardInfo> JobTransition::WrittenShards() const {
  if (state_.snapshots.saving) return state_.snapshots.saved->manifest.shards;
  std::vector<ShardInfo> shards;
  for (const StageSlot& slot : state_.slots) shards.push_back(slot.shard);
  return shards;
}

void JobTransition::FinishShards() {
  if (!state_.checkpoint_error.ok()) return CheckpointFailed(state_.checkpoint_error);
  BeginOperation(Activity::kCommit, state_.limits.effect_deadline_seconds);
  // Whether a job ends well is known once its last checkpoint is exported; until then none goes
  // that may be better.
  const int64_t keep = state_.step >= last_step() ? kKeepAll : spec().checkpoint.keep;
  Manifest manifest = state_.snapshots.saving ? SavedManifest() : MakeManifest(WrittenShards());
  std::vector<ExpectedTensor> expected = ExpectedTensors(manifest.shards);
  actions_.push_back(CommitCheckpoint{FenceOf(state_), state_.temporary_folder, std::move(manifest),
                                      std::move(expected), keep});
}

void JobTransition::On(const CheckpointCommitted& event) {
  if (!Expects(Activity::kCommit, event.fence)) return;
  if (!event.ref.ok()) return CheckpointFailed(event.ref.status());
  state_.temporary_folder.clear();
  state_.saved = true;
  state_.unsaved.clear();
  state_.last_checkpoint = *event.ref;
  state_.last_checkpoint_step = static_cast<int64_t>(state_.step);
  state_.last_checkpoint_bytes = 0;
  for (const ShardInfo& shard : WrittenShards()) state_.last_checkpoint_bytes += shard.bytes;
  state_.checkpoint_seconds = now_.seconds - state_.checkpoint_started_seconds;
  state_.unsaved_train_seconds = 0;
  Record(JobRecord::Kind::kCheckpoint, "").step_seconds = state_.checkpoint_seconds;
  if (state_.snapshots.saving) {
    state_.snapshots.save_tried = true;  // also where a holder was lost meanwhile
    return EndSave();
  }
  Continue();
}

void JobTransition::CheckpointFailed(const absl::Status& status) {
  DropCheckpoint();
  state_.saved = true;  // tried; the next one is due at the next boundary
  state_.unsaved_train_seconds = 0;
  const std::string text =
      absl::StrCat("checkpoint at step ", state_.step, ": ", status.ToString());
  Record(JobRecord::Kind::kCheckpoint, text).step_seconds =
      now_.seconds - state_.checkpoint_started_seconds;
  if (state_.snapshots.saving) {
    EndSave();
    state_.snapshots.save_lacked_room =
        state_.snapshots.save_spares && absl::IsResourceExhausted(status);
    return;
  }
  if (state_.step < last_step()) return Continue();
  const std::string kept =
      state_.last_checkpoint_step >= 0
          ? absl::StrCat("the one of step ", state_.last_checkpoint_step, " is kept")
          : "there is no earlier one";
  const std::string last =
      absl::StrCat("the last checkpoint, at step ", state_.step, ", could not be written; ", kept);
  if (!IsOfTheDisk(status)) return Fail(Annotate(status, last));
  const std::string why = absl::StrCat(last, ": ", status.ToString());
  Recover(absl::StrCat(why, "; it is tried until the folder of checkpoints has room and answers"));
  state_.unsaved = why;
}

void JobTransition::DropCheckpoint() {
  if (state_.temporary_folder.empty()) return;
  actions_.push_back(AbandonCheckpoint{state_.temporary_folder});
  state_.temporary_folder.clear();
}

void JobTransition::Export() {
  BeginOperation(Activity::kExport, state_.limits.effect_deadline_seconds);
  actions_.push_back(
      ExportCheckpoint{FenceOf(state_), state_.last_checkpoint, spec().checkpoint.keep});
}

void JobTransition::On(const WeightsExported& event) {
  if (!Expects(Activity::kExport, event.fence)) return;
  if (const absl::Status& status = event.result.status(); !status.ok()) {
    // A step is only known to have spoilt them by the next one's loss: this is the last one's
    // doing.
    const absl::Status failed =
        Annotate(status, absl::StrCat("export of the weights after step ", state_.step));
    // Away, or the checkpoint is broken by now: the one before it leads here, too.
    return IsOfTheDisk(status) ? Recover(TextAt(failed.ToString(), Place())) : Fail(failed);
  }
  state_.weights_digest = event.result->digest;
  state_.weights_folder = event.result->folder;
  End(JobPhase::kSucceeded, state_.reached_text);
}

}  // namespace stagecoach
