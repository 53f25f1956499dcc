// While a job waits for stages: the newest snapshot in the memory of those that are left is written
// as a checkpoint, so that the job can go on from there if they go away too, or if nobody comes.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/job/job_transition.h"
#include "coordinator/job/resume_check.h"

namespace stagecoach {

// Once a generation, as nothing new is held meanwhile; and once more where there was no room, but
// the job is to fail or somebody asks for a checkpoint.
bool MaySave(const JobState& state, double now) {
  const bool anybody = !state.slots.empty() || !state.stages.ready.empty();
  const bool again =
      state.snapshots.save.lacked_room && (GivesUp(state, now) || state.checkpoints.requested);
  return MayHoldSnapshots(state) && (!state.snapshots.save.tried || again) && anybody &&
         HasRun(state) && state.phase == JobPhase::kRecovering;
}

bool GivesUp(const JobState& state, double now) {
  const bool fewer =
      state.job->spec.pipeline.continue_with_fewer_stages && !state.stages.accepts_fewer;
  return state.stages.give_up_seconds > 0 && now >= state.stages.give_up_seconds && !fewer;
}

void JobTransition::StartSave() {
  state_.snapshots.save.on = state_.snapshots.save.tried = true;
  state_.snapshots.save.lacked_room = false;
  if (state_.slots.empty()) {  // of a coordinator that was restarted
    for (const StageRegistration& stage : state_.stages.ready) {
      StageSlot slot;
      slot.stage = stage;
      slot.place = static_cast<int>(state_.slots.size());
      state_.slots.push_back(std::move(slot));
    }
  }
  AskForSnapshots();
}

void JobTransition::SaveNewest() {
  std::optional<Snapshot> newest = NewestHeld(
      state_, static_cast<uint64_t>(std::max<int64_t>(state_.checkpoints.last.step, 0)) + 1);
  if (!newest.has_value() || newest->manifest.state.step >= LastStep(state_) ||
      !CheckResume(*state_.job, newest->manifest, /*own=*/true).ok()) {
    return EndSave();
  }
  TakeTrainState(state_, newest->manifest.state);
  state_.source = {};  // of a search that came before
  state_.snapshots.asked = false;
  state_.snapshots.save.chosen = std::move(newest);
  Record(JobRecord::Kind::kState,
         absl::StrCat("while it waits, step ", state_.step,
                      ", which the stages have in memory, is written as a checkpoint"));
  StartCheckpoint();
}

void JobTransition::WriteSnapshotShards() {
  const Snapshot& snapshot = *state_.snapshots.save.chosen;
  std::map<int, std::vector<std::string>> files;  // by holder
  for (size_t i = 0; i < snapshot.holders.size(); ++i) {
    files[snapshot.holders[i]].push_back(snapshot.manifest.shards[i].file);
  }
  for (size_t k = 0; k < state_.slots.size(); ++k) {
    const auto held = files.find(static_cast<int>(k));
    if (held == files.end()) {
      state_.slots[k].answered = true;
      --state_.operation.unanswered;
      continue;
    }
    WriteShardCommand command{.fence = FenceOf(state_),
                              .folder = state_.checkpoints.writing.folder,
                              .snapshot_files = held->second,
                              .snapshot_key = SnapshotKey(state_)};
    actions_.push_back(SendWriteShard{held->first, state_.slots[k].stage, std::move(command)});
  }
}

// As the stages have it, with what the coordinator alone knows: snapshots come without the facts of
// the data.
Manifest SavedManifest(const JobState& state) {
  Manifest manifest = state.snapshots.save.chosen->manifest;
  manifest.facts = state.found.facts;
  manifest.term = state.term;
  return manifest;
}

void JobTransition::EndSave() {
  state_.snapshots.save.on = false;
  state_.snapshots.save.chosen.reset();
  state_.term = std::max(state_.term, state_.raised_term);
  Rest(Activity::kWaitStages);
  SetWaitDeadline(state_, now_.seconds);
}

}  // namespace stagecoach
