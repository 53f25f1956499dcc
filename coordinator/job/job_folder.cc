// Do the coordinator and all stages reach one folder of checkpoints? Asked with every placement:
// before the stages load (kProbeFolder), answered by them as they load, checked before the first
// step (kCheckFolder). A job that never ran fails with what was seen: whoever set up the cluster
// must act. Only a disk that answers with errors may come back, and is tried again.
// A job that ran once had such a folder. Where another stage sees it, a stage that does not is
// wrong, and the job goes on without it; where none of them does, it may come back, and others are
// taken until then, if there are any.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/error_place.h"
#include "base/errors/status.h"
#include "checkpoint/names.h"
#include "coordinator/job/job_transition.h"

namespace stagecoach {
namespace {

// kStagesAlone: the coordinator does not find the files that they wrote. No stage is to blame.
enum class FolderSeenBy { kNoStage, kSomeStages, kStagesAlone };

// A folder that has not what everybody else finds there. A disk or a network that fails for a while
// says otherwise, and comes back.
bool SeesAnotherFolder(const absl::Status& fault) {
  return absl::IsNotFound(fault) || absl::IsPermissionDenied(fault) ||
         absl::IsFailedPrecondition(fault);
}

// A disk that is away or answers with errors; it may come back.
bool DiskFails(const absl::Status& fault) {
  return absl::IsUnavailable(fault) || absl::IsDataLoss(fault) || absl::IsDeadlineExceeded(fault);
}

bool OnlyFails(const std::map<int, absl::Status>& faults) {
  return std::all_of(faults.begin(), faults.end(),
                     [](const auto& fault) { return DiskFails(fault.second); });
}

// The next checkpoint is written before the last one may go. Later the disk may be as full as
// training has made it; each checkpoint then looks for itself.
int64_t BytesBeforeStart(const JobState& state) {
  if (HasRun(state) || Writes(state)) return 0;
  const CheckpointSpec& checkpoint = state.job->spec.checkpoint;
  const TrainingSpec& training = state.job->spec.training;
  const bool late = (training.steps > 0 && checkpoint.every_steps >= training.steps) ||
                    (training.epochs > 0 && checkpoint.every_epochs >= training.epochs);
  const bool only_last = checkpoint.never || checkpoint.automatic() || late;
  return (only_last ? 1 : 2) * CheckpointBytes(state);
}

// By stages that have answered in this load. A full disk costs a job that has run checkpoints only.
std::map<int, absl::Status> RefusedFolders(const JobState& state) {
  std::map<int, absl::Status> faults;
  for (size_t k = 0; k < state.slots.size(); ++k) {
    const absl::Status& folder = state.slots[k].loaded.folder;
    if (!state.slots[k].answered || folder.ok()) continue;
    if (HasRun(state) && absl::IsResourceExhausted(folder)) continue;
    faults.emplace(static_cast<int>(k), folder);
  }
  return faults;
}

// Whether any has answered that it does; a full disk took the answer, not the view.
FolderSeenBy SeenByStages(const JobState& state) {
  const bool some = std::any_of(state.slots.begin(), state.slots.end(), [](const StageSlot& slot) {
    const LoadResult& loaded = slot.loaded;
    return slot.answered && loaded.folder_answered &&
           (loaded.folder.ok() || absl::IsResourceExhausted(loaded.folder));
  });
  return some ? FolderSeenBy::kSomeStages : FolderSeenBy::kNoStage;
}

std::string RefusalText(const JobState& state, const std::map<int, absl::Status>& faults) {
  std::vector<std::string> seen;
  for (const auto& [k, fault] : faults) {
    if (k < 0 || k >= static_cast<int>(state.slots.size())) continue;
    seen.push_back(absl::StrCat(StageText(state, k), ": ", fault.ToString()));
  }
  if (OnlyFails(faults)) {
    return absl::StrCat("the folder of checkpoints cannot be read or written now: ",
                        absl::StrJoin(seen, "; "));
  }
  if (IsStoreName(state.checkpoints.probe.folder)) {
    return absl::StrCat(
        "not every stage can use the coordinator's store: ", absl::StrJoin(seen, "; "),
        "; it is reached at the stage's --coordinator: give both the same version, or start the "
        "coordinator with --store=folder");
  }
  return absl::StrCat(
      "not every stage uses the coordinator's folder of checkpoints: ", absl::StrJoin(seen, "; "),
      "; mount one shared folder at the coordinator's --checkpoint-dir on every machine, where all "
      "of them may write, or start the coordinator with --store=embedded");
}

// Other jobs pass these stages over while others suffice.
void NoteRefusals(const JobState& state, const std::map<int, absl::Status>& faults,
                  FolderSeenBy seen_by, std::vector<JobAction>& actions) {
  NoteFolder note;
  for (const auto& [k, fault] : faults) {
    if (k < 0 || k >= static_cast<int>(state.slots.size())) continue;
    const StageRegistration& stage = state.slots[k].stage;
    if (SeesAnotherFolder(fault) && seen_by != FolderSeenBy::kStagesAlone)
      note.stages.push_back({stage.name, stage.incarnation});
  }
  if (!note.stages.empty()) actions.push_back(std::move(note));
}

// Of a job that goes on: for good where another stage sees the folder, else until there is no other
// one.
void LeaveAside(JobState& state, const std::map<int, absl::Status>& faults, FolderSeenBy seen_by,
                std::vector<JobAction>& actions) {
  NoteRefusals(state, faults, seen_by, actions);
  for (const auto& [k, fault] : faults) {
    if (k < 0 || k >= static_cast<int>(state.slots.size())) continue;
    const StageRegistration& stage = state.slots[k].stage;
    Blame(state, stage.name, "error");
    if (seen_by == FolderSeenBy::kStagesAlone) continue;
    if (SeesAnotherFolder(fault) && seen_by == FolderSeenBy::kSomeStages) {
      std::erase_if(state.stages.unfit,
                    [&](const StageProcess& p) { return p.name == stage.name; });
      state.stages.unfit.push_back({stage.name, stage.incarnation});
    } else {
      std::erase(state.stages.suspects, stage.name);  // a wait for the mount may be long
      state.stages.suspects.push_back(stage.name);
    }
  }
}

}  // namespace

bool HasRun(const JobState& state) { return !state.found.fingerprint.empty(); }

void JobTransition::AskForFolder() {
  BeginOperation(Activity::kProbeFolder, state_.limits.effect_deadline_seconds);
  actions_.push_back(ProbeFolder{FenceOf(state_), BytesBeforeStart(state_)});
}

void JobTransition::On(const FolderProbed& event) {
  if (IsTerminal(state_.phase) || !Expects(Activity::kProbeFolder, event.fence)) {
    if (event.probe.ok()) actions_.push_back(AbandonCheckpoint{event.probe->folder});
    return;
  }
  if (event.probe.ok()) {
    state_.checkpoints.probe = *event.probe;
    return SendLoads();
  }
  const absl::Status status = AnnotateAt(
      Annotate(event.probe.status(), "the coordinator's folder of checkpoints"), Place(state_));
  if (!HasRun(state_)) {
    if (!DiskFails(status)) return Fail(status);
    return StorageFailed(status.ToString());
  }
  // A full disk costs checkpoints, not the training that went on without them. One that is away
  // comes back.
  if (!absl::IsResourceExhausted(status)) return Recover(status.ToString());
  Record(JobRecord::Kind::kRecovery,
         absl::StrCat("goes on without a look at what the stages see: ", status.ToString()));
  SendLoads();
}

// Before the first step one is enough: the others need not load for a job that ends.
bool JobTransition::RefusedBeforeFirstRun() {
  if (HasRun(state_)) return false;
  const std::map<int, absl::Status> faults = RefusedFolders(state_);
  if (!faults.empty()) FolderRefused(faults, /*stages_alone=*/false);
  return !faults.empty();
}

// The load has failed for another reason before all had answered: those that refused are left aside
// as well. What is to be said of them, behind that reason.
std::string JobTransition::LeaveRefusersAside() {
  const std::map<int, absl::Status> faults = RefusedFolders(state_);
  if (faults.empty()) return "";
  LeaveAside(state_, faults, SeenByStages(state_), actions_);
  return absl::StrCat("; ", RefusalText(state_, faults));
}

// Only when all have answered is it known whether one stage has lost the folder or all have: the
// first of them to say so was left aside, and a job of all the stages there are failed for want of
// another.
void JobTransition::CheckAnswers() {
  if (const std::map<int, absl::Status> faults = RefusedFolders(state_); !faults.empty()) {
    return FolderRefused(faults, /*stages_alone=*/false);
  }
  if (state_.checkpoints.probe.folder.empty()) return FinishLoad();
  CheckFolder action;
  action.last_use = Writes(state_);
  for (size_t k = 0; k < state_.slots.size(); ++k) {
    const LoadResult& loaded = state_.slots[k].loaded;
    // A full disk took the answer, not the view.
    if (loaded.folder_answered && loaded.folder.ok()) action.stages.push_back(static_cast<int>(k));
  }
  BeginOperation(Activity::kCheckFolder, state_.limits.effect_deadline_seconds);
  action.fence = FenceOf(state_);
  action.probe = state_.checkpoints.probe;
  actions_.push_back(std::move(action));
}

void JobTransition::On(const FolderChecked& event) {
  if (!Expects(Activity::kCheckFolder, event.fence)) return;
  state_.checkpoints.probe = {};  // removed with the check
  if (event.faults.empty()) {
    NoteFolder note{{}, true};
    for (const StageSlot& slot : state_.slots) {
      if (slot.loaded.folder_answered && slot.loaded.folder.ok()) {
        note.stages.push_back({slot.stage.name, slot.stage.incarnation});
      }
    }
    actions_.push_back(std::move(note));
    return FinishLoad();
  }
  FolderRefused(event.faults, event.faults.size() == state_.slots.size());
}

void JobTransition::FolderRefused(const std::map<int, absl::Status>& faults, bool stages_alone) {
  const FolderSeenBy seen_by = stages_alone ? FolderSeenBy::kStagesAlone : SeenByStages(state_);
  const std::string text = TextAt(RefusalText(state_, faults), Place(state_));
  if (!HasRun(state_)) {
    // What is mounted wrongly stays so, a disk that fails has its tries.
    if (!OnlyFails(faults)) {
      NoteRefusals(state_, faults, seen_by, actions_);
      return Fail(absl::FailedPreconditionError(text));
    }
    if (LoadsTooOften(text)) return;
  }
  LeaveAside(state_, faults, seen_by, actions_);
  Recover(text);
}

std::string UnfitText(const JobState& state, const std::vector<std::string>& passed_over) {
  std::vector<std::string> names;
  for (const StageProcess& stage : state.stages.unfit) names.push_back(stage.name);
  names.insert(names.end(), passed_over.begin(), passed_over.end());
  if (names.empty()) return "";
  return absl::StrCat("without ", absl::StrJoin(names, ", "),
                      ", which did not see the folder of checkpoints");
}

}  // namespace stagecoach
