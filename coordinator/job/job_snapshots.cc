// Snapshots in the memory of stages: when one is taken, and a recovery that begins with the newest
// that is whole. What is not there, or cannot be loaded, is a matter of the checkpoint on disk.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "coordinator/job/job_transition.h"
#include "coordinator/job/resume_check.h"
#include "plan/costs/training_state.h"

namespace stagecoach {
namespace {

// Of the time that a job trains.
constexpr double kShare = 0.035;
// A loss takes about as long to be noticed and mended: what is lost beside that need not be less.
constexpr double kLeastSeconds = 3;
// Copied, hashed and sent, where none was measured yet.
constexpr double kLikelyBytesPerSecond = 400e6;
// Loads that end as the world ends them: the stage that failed may have been the one that is lost
// next.
constexpr int64_t kTries = 3;
constexpr int64_t kUnfinished = 3, kMostWaitDoublings = 12;
// Each load takes the manifest along, and a message has an end (kControlMessageBytes).
constexpr size_t kMostManifestBytes = size_t{8} << 20;

bool TakeSnapshot(JobState& state, const Snapshot& snapshot) {
  const absl::Status fits = CheckResume(*state.job, snapshot.manifest, /*own=*/true);
  if (!fits.ok() || snapshot.manifest.state.step >= LastStep(state)) return false;
  std::string manifest = FormatManifest(snapshot.manifest);
  if (manifest.size() > kMostManifestBytes) return false;
  TakeTrainState(state, snapshot.manifest.state);
  state.source = {.manifest = std::move(manifest)};
  for (size_t i = 0; i < snapshot.holders.size(); ++i) {
    const StageSlot& holder = state.slots[static_cast<size_t>(snapshot.holders[i])];
    state.source.holders.push_back({snapshot.manifest.shards[i].file, holder.stage.address});
  }
  return true;
}

int64_t SnapshotEvery(const JobState& state) {
  if (state.job->spec.snapshot.every_steps > 0) return state.job->spec.snapshot.every_steps;
  if (state.pace.step_seconds <= 0) return kMaxSteps;  // not known yet
  double seconds = state.snapshots.seconds;
  if (seconds <= 0) {
    int64_t most = 0;
    for (const StageSlot& slot : state.slots) {
      most = std::max(most, TrainingStateBytes(state.job->network, state.job->spec.training,
                                               slot.cells));
    }
    seconds = static_cast<double>(most) / kLikelyBytesPerSecond;
  }
  const double steps =
      std::ceil(std::max(seconds / kShare, kLeastSeconds) / state.pace.step_seconds);
  return static_cast<int64_t>(std::clamp(steps, 1.0, static_cast<double>(kMaxSteps)));
}

// Each load finds the facts of the data anew, and a thousand names of classes are long.
std::string SnapshotManifest(const JobState& state) {
  Manifest manifest = MakeManifest(state, {});
  manifest.facts = {};
  return FormatManifest(manifest);
}

bool SnapshotDue(const JobState& state) {
  const SnapshotsOfLoad& load = state.snapshots.load;
  if (!load.possible || state.step == 0) return false;
  // Perhaps it is the snapshot that ends stages, on a machine that has less memory than it says:
  // then it must not be the first thing that each of them does.
  const int64_t unfinished = state.snapshots.unfinished;
  if (unfinished >= kUnfinished) {
    const auto doublings = std::min<int64_t>(unfinished, kMostWaitDoublings);
    if (state.step < load.begun_step + (uint64_t{1} << doublings)) return false;
  }
  const bool busy = std::any_of(state.slots.begin(), state.slots.end(),
                                [](const StageSlot& slot) { return slot.report.snapshot.busy; });
  if (busy) return false;
  const auto every = static_cast<uint64_t>(SnapshotEvery(state));
  // After a load there is none of the stages as they are now: the next loss would cost more than
  // one does.
  if (!load.taken_step.has_value()) return state.source.trained() || state.step >= every;
  return state.step - *load.taken_step >= every;
}

}  // namespace

std::vector<std::string> HoldersOf(const JobState& state) {
  std::vector<std::string> names;
  if (!state.snapshots.taken) return names;
  for (const StageSlot& slot : state.slots) names.push_back(slot.stage.name);
  return names;
}

// With a checkpoint of the last step nothing is left to train.
bool MayHoldSnapshots(const JobState& state) {
  const bool done = state.checkpoints.last.step >= 0 &&
                    static_cast<uint64_t>(state.checkpoints.last.step) >= LastStep(state);
  return state.snapshots.taken && !state.job->spec.snapshot.never && !done;
}

void JobTransition::FindWeights() {
  if (MayHoldSnapshots(state_)) return WaitForStages();  // they are asked first
  Search(/*own=*/true);
}

void JobTransition::AskForSnapshots() {
  BeginOperation(Activity::kFindSnapshots, state_.limits.snapshot_deadline_seconds);
  for (size_t k = 0; k < state_.slots.size(); ++k) {
    actions_.push_back(SendFindSnapshots{static_cast<int>(k), state_.slots[k].stage,
                                         FenceOf(state_), SnapshotKey(state_)});
  }
}

// Ids come again once a job is forgotten, and stages may still hold what another job had under one.
// Whoever has a key gets the weights: the job's stages are told it, and others cannot guess it.
std::string SnapshotKey(const JobState& state) {
  const JobDefinition& job = *state.job;
  return Sha256Hex(absl::StrFormat("%s\n%s\n%d\n%a\n%s\n%s", job.secret, job.id, job.sequence,
                                   job.submitted_unix_seconds, job.owner, job.model_sha256));
}

// A stage that is gone holds none.
void JobTransition::On(const SnapshotsFound& event) {
  if (!Answered(Activity::kFindSnapshots, event.fence, event.stage)) return;
  if (event.held.ok()) state_.slots[event.stage].held = *event.held;
  if (AllAnswered()) ChooseSnapshot();
}

std::optional<Snapshot> NewestHeld(JobState& state, uint64_t least) {
  std::vector<std::vector<HeldShard>> held;
  for (StageSlot& slot : state.slots) held.push_back(std::exchange(slot.held, {}));
  if (state.snapshots.tries >= kTries) least = std::max(least, state.snapshots.tried_step + 1);
  // What no record tells of did not happen. A coordinator that was restarted may know less than its
  // stages, and not whether the newest step that it knows was evaluated.
  const uint64_t furthest = state.furthest_step;
  const uint64_t most =
      state.snapshots.opened_step == furthest && furthest > 0 ? furthest - 1 : furthest;
  return NewestSnapshot(held, LayersOf(state), least, most);
}

void JobTransition::ChooseSnapshot() {
  if (state_.snapshots.save.on) return SaveNewest();
  const int64_t least = std::max<int64_t>(state_.checkpoints.last.step, 1);
  const std::optional<Snapshot> newest = NewestHeld(state_, static_cast<uint64_t>(least));
  if (!newest.has_value() || !TakeSnapshot(state_, *newest)) return Search(/*own=*/true);
  Enter(JobPhase::kPlanned,
        absl::StrCat("goes on from step ", state_.step, ", which the stages have in memory"));
  PlaceStages();
}

SnapshotPlan SnapshotPlanOf(const JobState& state, size_t stage) {
  if (state.job->spec.snapshot.never || Writes(state)) return {};
  SnapshotPlan plan{.key = SnapshotKey(state),
                    .manifest = state.source.manifest,
                    .holders = state.source.holders};
  const size_t stages = state.slots.size();
  if (stages > 1) plan.replica_address = state.slots[(stage + 1) % stages].stage.address;
  return plan;
}

// Whatever it was, the next recovery must not fail for the same reason for ever.
void LoadFromSnapshotFailed(JobState& state, const absl::Status& status) {
  JobSnapshots& snapshots = state.snapshots;
  if (state.source.manifest.empty()) return;
  if (snapshots.tried_step != state.step) snapshots.tries = 0;
  snapshots.tried_step = state.step;
  const bool world = absl::IsUnavailable(status) || absl::IsAborted(status);
  snapshots.tries = world ? snapshots.tries + 1 : kTries;
}

void JobTransition::BeginSnapshots() {
  JobSnapshots& snapshots = state_.snapshots;
  snapshots.load = {.begun_step = state_.step};
  snapshots.load.possible =
      !spec().snapshot.never && !Writes(state_) && state_.slots.size() > 1 &&
      std::all_of(state_.slots.begin(), state_.slots.end(),
                  [](const StageSlot& slot) { return slot.loaded.snapshots; });
  if (!state_.source.manifest.empty()) snapshots.load.loaded_step = state_.step;
  snapshots.tries = 0;
  ReleaseLeft();
  for (StageSlot& slot : state_.slots) slot.report.snapshot = {};
}

// What is not of this placement any more need not keep what it holds.
void JobTransition::ReleaseLeft() {
  for (const StageSlot& slot : state_.slots) state_.snapshots.left.erase(slot.stage);
  for (const StagePeer& stage : state_.snapshots.left) {
    actions_.push_back(SendRelease{stage, FenceOf(state_)});
  }
  state_.snapshots.left.clear();
}

void RequestSnapshot(JobState& state, RunCommand* command) {
  JobSnapshots& snapshots = state.snapshots;
  SnapshotsOfLoad& load = snapshots.load;
  command->snapshots_end = !load.possible;
  command->snapshot_of_load = !load.whole_step.has_value();
  command->snapshot_kept = load.whole_step.value_or(load.loaded_step.value_or(0));
  if (command->work != WorkKind::kTrain || !SnapshotDue(state)) return;
  command->snapshot = SnapshotManifest(state);
  snapshots.taken = true;
  load.taken_step = state.step;
}

// What the reports of a step say.
void NoteSnapshots(JobState& state) {
  JobSnapshots& snapshots = state.snapshots;
  SnapshotsOfLoad& load = snapshots.load;
  if (!load.taken_step.has_value() || load.whole_step == load.taken_step) return;
  double seconds = 0;
  for (const StageSlot& slot : state.slots) {
    const SnapshotReport& report = slot.report.snapshot;
    if (report.whole_step != load.taken_step) return;
    seconds = std::max(seconds, report.seconds);
  }
  load.whole_step = load.taken_step;
  snapshots.seconds = seconds;
  snapshots.unfinished = 0;
}

}  // namespace stagecoach
