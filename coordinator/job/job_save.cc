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
bool JobTransition::MaySave() const {
  const bool anybody = !state_.slots.empty() || !state_.ready.empty();
  const bool again = state_.snapshots.save_lacked_room && (GivesUp() || state_.save_requested);
  return MayHoldSnapshots() && (!state_.snapshots.save_tried || again) && anybody && HasRun() &&
         state_.phase == JobPhase::kRecovering;
}

bool JobTransition::GivesUp() const {
  const bool fewer = spec().pipeline.continue_with_fewer_stages && !state_.accepts_fewer;
  return state_.give_up_seconds > 0 && now_.seconds >= state_.give_up_seconds && !fewer;
}

void JobTransition::StartSave() {
  state_.snapshots.saving = state_.snapshots.save_tried = true;
  state_.snapshots.save_lacked_room = false;
  if (state_.slots.empty()) {  // of a coordinator that was restarted
    for (const StageRegistration& stage : state_.ready) {
      StageSlot slot;
      slot.stage = stage;
      slot.place = static_cast<int>(state_.slots.size());
      state_.slots.push_back(std::move(slot));
    }
  }
  AskForSnapshots();
}

void JobTransition::SaveNewest() {
  std::optional<Snapshot> newest =
      NewestHeld(static_cast<uint64_t>(std::max<int64_t>(state_.last_checkpoint_step, 0)) + 1);
  if (!newest.has_value() || newest->manifest.state.step >= last_step() ||
      !CheckResume(*state_.job, newest->manifest, /*own=*/true).ok()) {
    return EndSave();
  }
  TakeTrainState(newest->manifest.state);
  state_.load_folder.clear();  // of a search that came before
  state_.snapshots.asked = false;
  state_.snapshots.saved = std::move(newest);
  Record(JobRecord::Kind::kState,
         absl::StrCat("while it waits, step ", state_.step,
                      ", which the stages have in memory, is written as a checkpoint"));
  StartCheckpoint();
}

void JobTransition::WriteSnapshotShards() {
  const Snapshot& snapshot = *state_.snapshots.saved;
  std::map<int, std::vector<std::string>> files;  // by holder
  for (size_t i = 0; i < snapshot.holders.size(); ++i) {
    files[snapshot.holders[i]].push_back(snapshot.manifest.shards[i].file);
  }
  for (size_t k = 0; k < state_.slots.size(); ++k) {
    const auto held = files.find(static_cast<int>(k));
    if (held == files.end()) {
      state_.slots[k].answered = true;
      --state_.unanswered;
      continue;
    }
    WriteShardCommand command{.fence = FenceOf(state_),
                              .folder = state_.temporary_folder,
                              .snapshot_files = held->second,
                              .snapshot_key = SnapshotKey()};
    actions_.push_back(SendWriteShard{held->first, state_.slots[k].stage, std::move(command)});
  }
}

// As the stages have it, with what the coordinator alone knows: snapshots come without the facts of
// the data.
Manifest JobTransition::SavedManifest() const {
  Manifest manifest = state_.snapshots.saved->manifest;
  manifest.facts = state_.facts;
  manifest.term = state_.term;
  return manifest;
}

void JobTransition::EndSave() {
  state_.snapshots.saving = false;
  state_.snapshots.saved.reset();
  state_.term = std::max(state_.term, state_.raised_term);
  state_.activity = Activity::kWaitStages;
  state_.stall_seconds = 0;
  SetWaitDeadline();
}

}  // namespace stagecoach
