// A checkpoint beside the steps. At a boundary the stages copy their tensors, which training waits
// for. The folder, the shards and the commit come while the next steps run, under the fence of the
// copy. One at a time: what needs the store meanwhile waits for the end of the one under way
// (AwaitCheckpoint). The job's last one, those that somebody asked for, and those whose copies have
// no room are written in the steps' place (job_checkpoints.cc).
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/errors/error_place.h"
#include "coordinator/job/job_transition.h"

namespace stagecoach {
namespace {

bool IsOfCheckpoint(Activity activity) {
  return activity == Activity::kBeginCheckpoint || activity == Activity::kWriteShards ||
         activity == Activity::kCommit;
}

std::string PlaceOf(const JobState& state, const WriteBeside& beside) {
  return absl::StrCat("job ", state.job->id, ", checkpoint of step ", beside.fence.step, ", ",
                      ActivityName(beside.at));
}

double LastMoved(const JobState& state, const WriteBeside& beside, const DeadlinePassed& event) {
  double last = beside.since_seconds;
  if (beside.at != Activity::kWriteShards) return std::max(last, event.effect_moved_seconds);
  for (size_t k = 0; k < state.slots.size(); ++k) {
    const auto signs = event.stages.find(state.slots[k].stage.name);
    if (beside.answered[k] || signs == event.stages.end()) continue;
    last = std::max(last, signs->second.wrote_seconds);
  }
  return last;
}

}  // namespace

double NextDeadline(const JobState& state) {
  const double operation = state.operation.deadline_seconds;
  const double beside = BesideDeadline(state);
  if (operation == 0 || beside == 0) return std::max(operation, beside);
  return std::min(operation, beside);
}

double BesideDeadline(const JobState& state) {
  const auto& beside = state.checkpoints.writing.beside;
  return beside.has_value() ? beside->deadline_seconds : 0;
}

bool JobTransition::MayWriteBeside() const {
  return !state_.checkpoints.requested && !state_.checkpoints.copy_tried &&
         state_.step < LastStep(state_);
}

void JobTransition::CopyShards() {
  state_.checkpoints.copy_tried = true;
  SendRuns(Activity::kFlush, WorkKind::kNone, 0, /*copy=*/true);
}

// All stages have flushed. Where one has no room for its copy, the others' are dropped with the
// next command that writes their cells.
void JobTransition::NoteCopies() {
  const bool all = std::all_of(state_.slots.begin(), state_.slots.end(),
                               [](const StageSlot& slot) { return slot.copied; });
  if (all) StartBeside();
}

void JobTransition::StartBeside() {
  JobCheckpoints& checkpoints = state_.checkpoints;
  const bool unasked = !checkpoints.requested && CheckpointDue(state_);
  const double started = state_.operation.started_seconds;
  checkpoints.requested = false;  // whoever asked meanwhile asked for this boundary
  checkpoints.done = true;
  checkpoints.unsaved_train_seconds = 0;
  checkpoints.writing = {.started_seconds = started, .spares_room = unasked};
  checkpoints.writing.beside = WriteBeside{.fence = FenceOf(state_),
                                           .manifest = MakeManifest(state_, {}),
                                           .answered = std::vector<bool>(state_.slots.size()),
                                           .waited_seconds = now_.seconds - started};
  EnterWrite(Activity::kBeginCheckpoint);
  actions_.push_back(BeginCheckpoint{checkpoints.writing.beside->fence,
                                     (unasked ? 2 : 1) * CheckpointBytes(state_)});
}

bool JobTransition::AwaitsCheckpoint() const {
  return state_.checkpoints.writing.beside.has_value() && IsOfCheckpoint(state_.activity);
}

bool JobTransition::ExpectsWrite(Activity activity, const Fence& fence) {
  const auto& beside = state_.checkpoints.writing.beside;
  if (!beside.has_value()) return Expects(activity, fence);
  if (beside->at == activity && beside->fence == fence) return true;
  Stale();
  return false;
}

void JobTransition::EnterWrite(Activity activity) {
  const double stall = activity == Activity::kWriteShards
                           ? std::max(state_.limits.load_deadline_seconds,
                                      static_cast<double>(CheckpointBytes(state_)) /
                                          state_.limits.sync_bytes_per_second)
                           : state_.limits.effect_deadline_seconds;
  auto& beside = state_.checkpoints.writing.beside;
  if (!beside.has_value()) return BeginOperation(activity, stall);
  beside->at = activity;
  beside->since_seconds = now_.seconds;
  beside->stall_seconds = stall;
  beside->deadline_seconds = now_.seconds + stall;
  if (AwaitsCheckpoint()) Rest(activity);
}

void JobTransition::AwaitCheckpoint() {
  WriteBeside& beside = *state_.checkpoints.writing.beside;
  beside.awaited_seconds = now_.seconds;
  Rest(beside.at);
}

bool JobTransition::ShardAnswered(const ShardWritten& event) {
  auto& beside = state_.checkpoints.writing.beside;
  if (!beside.has_value()) return Answered(Activity::kWriteShards, event.fence, event.stage);
  if (!ExpectsWrite(Activity::kWriteShards, event.fence)) return false;
  const bool fresh = event.stage >= 0 && event.stage < std::ssize(beside->answered) &&
                     !beside->answered[static_cast<size_t>(event.stage)];
  if (!fresh) return Stale(), false;
  beside->answered[static_cast<size_t>(event.stage)] = true;
  return true;
}

void JobTransition::ShardFailed(int stage, const absl::Status& status) {
  const auto& beside = state_.checkpoints.writing.beside;
  if (!beside.has_value()) return OperationFailed(stage, status);
  FailedAt(stage, status, beside->at,
           absl::StrCat(PlaceOf(state_, *beside), ", ", StageText(state_, stage)));
}

bool JobTransition::AllShardsAnswered() const {
  const auto& beside = state_.checkpoints.writing.beside;
  if (!beside.has_value()) return AllAnswered();
  return std::all_of(beside->answered.begin(), beside->answered.end(), [](bool is) { return is; });
}

double JobTransition::EndBeside() {
  const bool awaited = AwaitsCheckpoint();
  const WriteBeside beside = *std::exchange(state_.checkpoints.writing.beside, std::nullopt);
  return beside.waited_seconds + (awaited ? now_.seconds - beside.awaited_seconds : 0);
}

void JobTransition::BesideOverdue(const DeadlinePassed& event) {
  WriteBeside& beside = *state_.checkpoints.writing.beside;
  const double extended = LastMoved(state_, beside, event) + beside.stall_seconds;
  if (extended > event.heard_seconds) {
    beside.deadline_seconds = extended;  // slow, and not stuck
    return;
  }
  const std::string place = PlaceOf(state_, beside);
  if (beside.at != Activity::kWriteShards) {
    return StorageFailed(
        TextAt(absl::StrFormat("%s has got no further for %.0f s; is the checkpoint storage stuck?",
                               ActivityName(beside.at), beside.stall_seconds),
               place));
  }
  std::vector<std::string> silent;
  for (size_t k = 0; k < state_.slots.size(); ++k) {
    if (beside.answered[k]) continue;
    const std::string& name = state_.slots[k].stage.name;
    silent.push_back(StageText(state_, static_cast<int>(k)));
    // Files that stand still stand still for all who use them.
    state_.stages.suspects.push_back(name);
    Blame(state_, name, "deadline");
  }
  Recover(TextAt(
      absl::StrFormat("no piece of a shard written for %.1f s: %s",
                      now_.seconds - LastMoved(state_, beside, event), absl::StrJoin(silent, "; ")),
      place));
}

}  // namespace stagecoach
