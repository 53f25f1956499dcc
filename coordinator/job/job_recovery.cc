// What goes wrong: lost stages, failed calls, deadlines, poison steps, cancellation.
#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/errors/error_place.h"
#include "base/errors/status.h"
#include "coordinator/job/failure_class.h"
#include "coordinator/job/job_transition.h"

namespace stagecoach {
namespace {

// Stages that come and go while a job loads are no fault of its step: more patience than with a
// step.
constexpr int64_t kLoadFailureFactor = 4;
constexpr int64_t kTriesWithAll = 2;

bool IsOfLoad(Activity activity) {
  return activity == Activity::kLoad || activity == Activity::kPlan ||
         activity == Activity::kProfile || activity == Activity::kProbeFolder ||
         activity == Activity::kCheckFolder;
}

}  // namespace

void JobTransition::OperationFailed(int stage, const absl::Status& status) {
  const StageRegistration& who = state_.slots[stage].stage;
  const std::string place = Place(stage);
  const FailureClass failure = ClassOf(state_.activity, status, HasRun());
  if (failure == FailureClass::kJob) return Fail(AnnotateAt(status, place));
  if (absl::IsUnavailable(status)) {
    // Dead, or its neighbour is: its next heartbeat tells.
    actions_.push_back(DoubtStage{who.name, who.incarnation});
  }
  Blame(who.name, absl::IsUnavailable(status) ? "unavailable" : "error");
  const std::string cause = TextAt(status.ToString(), place);
  if (failure == FailureClass::kStage) return StageFailed({who.name}, cause);
  // Nobody's fault, but where there is another stage, that one may have the better connection.
  if (state_.setbacks >= kTriesWithAll) state_.suspects.push_back(who.name);
  Recover(cause);
}

bool JobTransition::IsOfLastGeneration(const Fence& fence) const {
  return fence.term == state_.former.term && fence.generation == state_.former.generation &&
         state_.activity != Activity::kHeld;
}

// A stage that fails for a reason of its own breaks its links, and its neighbours may be heard
// first, with nothing to tell but a broken link. By then its answer is one to the generation
// before; what it says of job and step is so in this one too.
void JobTransition::LateFailure(const Reported& event) {
  const absl::Status& status = event.report.status();
  const std::string place =
      absl::StrCat("job ", state_.job->id, ", step ", event.fence.step, ", stage ", event.stage);
  const std::string cause = TextAt(status.ToString(), place);
  const FailureClass failure = ClassOf(Activity::kTrain, status, HasRun());
  if (failure == FailureClass::kJob) return Fail(AnnotateAt(status, place));
  if (failure == FailureClass::kWorld || state_.failed_generation == event.fence.generation) {
    return Stale();
  }
  std::set<std::string> names;
  if (event.stage >= 0 && event.stage < static_cast<int>(state_.former_stages.size())) {
    names.insert(state_.former_stages[event.stage]);
  }
  for (const std::string& name : names) Blame(name, "error");
  state_.suspects.insert(state_.suspects.end(), names.begin(), names.end());
  state_.failed_generation = event.fence.generation;
  Record(JobRecord::Kind::kRecovery, absl::StrCat("the reason: ", cause));
  IsPoison(names, event.fence.step, cause);
}

bool JobTransition::IsPoison(const std::set<std::string>& stages, uint64_t step,
                             const std::string& cause) {
  StepFailures& failed = state_.failures[step];
  ++failed.count;
  failed.stages.insert(stages.begin(), stages.end());
  const int64_t limit = state_.limits.max_failures_per_step;
  if (failed.count < (failed.stages.size() > 1 ? limit : 2 * limit)) return false;
  Fail(absl::AbortedError(absl::StrCat(
      "step ", step, " failed ", failed.count, " times",
      failed.stages.empty() ? "" : absl::StrCat(", on ", absl::StrJoin(failed.stages, " and ")),
      "; last: ", cause)));
  return true;
}

bool JobTransition::LoadsTooOften(const std::string& cause) {
  ++state_.load_failures;
  if (state_.load_failures < kLoadFailureFactor * state_.limits.max_failures_per_step) return false;
  Fail(absl::AbortedError(
      absl::StrCat("loading failed ", state_.load_failures, " times in a row; last: ", cause)));
  return true;
}

void JobTransition::StageFailed(const std::set<std::string>& stages, const std::string& cause) {
  state_.suspects.insert(state_.suspects.end(), stages.begin(), stages.end());
  state_.failed_generation = state_.generation;
  const bool ended =
      IsOfLoad(state_.activity) ? LoadsTooOften(cause) : IsPoison(stages, state_.step, cause);
  if (!ended) Recover(cause);
}

void JobTransition::Blame(const std::string& stage_name, const char* reason) {
  auto found =
      std::find_if(state_.faults.begin(), state_.faults.end(), [&](const StageFaults& faults) {
        return faults.stage_name == stage_name && faults.reason == reason;
      });
  if (found == state_.faults.end()) {
    found = state_.faults.insert(state_.faults.end(), {stage_name, reason, 0});
  }
  ++found->count;
}

void JobTransition::On(const StageLost& event) {
  const auto found =
      std::find_if(state_.slots.begin(), state_.slots.end(), [&](const StageSlot& slot) {
        return slot.stage.name == event.name && slot.stage.incarnation == event.incarnation;
      });
  if (found == state_.slots.end()) return Stale();
  if (state_.snapshots.saving) {  // what the others hold may be enough
    state_.slots.erase(found);
    state_.snapshots.save_tried = false;
    if (state_.activity == Activity::kCommit)
      return;  // its shards are on the disk; the commit may fail
    DropCheckpoint();
    return EndSave();
  }
  const std::string cause = TextAt(
      absl::StrCat("lost stage ", found - state_.slots.begin(), ": ", event.reason), Place());
  switch (state_.activity) {
    case Activity::kFindCheckpoint:
    case Activity::kWaitStages:
    case Activity::kBackOff:
    case Activity::kExport:  // the weights are on disk already
      state_.slots.erase(found);
      return;
    default:
      break;
  }
  // It is told to abort all the same: where only its lease ended it may still be computing.
  actions_.push_back(SendAbort{found->stage, FenceOf(state_), cause});
  const StageSlot lost = *found;
  state_.slots.erase(found);
  if (state_.snapshots.taken) state_.snapshots.left.insert(lost.stage);
  Blame(event.name, "lost");
  Recover(cause);
  NoteFormer(lost);
}

bool JobTransition::WorkedAt(const Fence& fence, const std::string& stage_name) const {
  const std::vector<std::string>& former = state_.former_stages;
  if (CompareIncarnation(fence, state_.former) == 0) {
    return std::find(former.begin(), former.end(), stage_name) != former.end();
  }
  return CompareIncarnation(fence, FenceOf(state_)) == 0 &&
         std::any_of(state_.slots.begin(), state_.slots.end(),
                     [&](const StageSlot& slot) { return slot.stage.name == stage_name; });
}

// By then the stage is lost, and the job recovers or has gone on elsewhere. A stage may tell
// anything of any job: what counts is said by one that had a place in this generation or the one
// before, which is as late as a restart is.
void JobTransition::On(const StageDied& event) {
  const Fence& fence = event.death.fence;
  StageDeaths& deaths = state_.deaths;
  const Fence counted{.term = deaths.term, .generation = deaths.generation};
  const bool counts = WorkedAt(fence, event.name) && fence.step <= state_.furthest_step &&
                      CompareIncarnation(fence, counted) > 0;
  const bool done = state_.activity == Activity::kHeld || state_.activity == Activity::kExport;
  if (!counts || done) return Stale();
  const bool again = deaths.count > 0 && deaths.step == fence.step &&
                     deaths.instruction == event.death.instruction;
  if (!again) deaths = {.step = fence.step, .instruction = event.death.instruction};
  ++deaths.count;
  deaths.stages.insert(event.name);
  deaths.term = fence.term;
  deaths.generation = fence.generation;
  state_.suspects.push_back(event.name);
  const std::string text = absl::StrCat("stage ", event.name, " ended by ", DeathText(event.death));
  Record(JobRecord::Kind::kRecovery, absl::StrCat("the reason: ", text));
  if (deaths.count < state_.limits.max_failures_per_step) return;
  Fail(absl::AbortedError(TextAt(
      absl::StrCat(text, "; ", deaths.count,
                   " times in a row a process ended so at this step and instruction, on ",
                   absl::StrJoin(deaths.stages, " and "), "; its log, or a core dump, says where"),
      Place())));
}

void JobTransition::AbortStages(const std::string& reason) {
  for (const StageSlot& slot : state_.slots) {
    actions_.push_back(SendAbort{slot.stage, FenceOf(state_), reason});
  }
}

void JobTransition::On(const TermRaised& event) {
  state_.raised_term = event.term;
  // Nothing is under way that an answer could come to.
  if (state_.activity == Activity::kWaitStages || state_.activity == Activity::kBackOff) {
    state_.term = event.term;
  }
  if (state_.activity == Activity::kBackOff) state_.deadline_seconds = now_.seconds;
  Record(JobRecord::Kind::kState, event.why);
}

void JobTransition::NoteFormer(const StageSlot& slot) {
  std::vector<std::string>& names = state_.former_stages;
  names.resize(std::max<size_t>(names.size(), static_cast<size_t>(slot.place) + 1));
  names[static_cast<size_t>(slot.place)] = slot.stage.name;
}

void JobTransition::BeginGeneration() {
  state_.former = FenceOf(state_);
  state_.former_stages.clear();
  for (const StageSlot& slot : state_.slots) {
    if (state_.snapshots.taken) state_.snapshots.left.insert(slot.stage);
    NoteFormer(slot);
  }
  ++state_.generation;
  state_.term = std::max(state_.term, state_.raised_term);
  state_.attempt = 0;
  state_.pending.reset();
  state_.load_folder.clear();
  const JobSnapshots& snapshots = state_.snapshots;
  if (snapshots.taken_step.has_value() && snapshots.taken_step != snapshots.whole_step) {
    ++state_.snapshots.unfinished;
  }
  state_.snapshots.taken_step.reset();
  state_.snapshots.asked = state_.snapshots.saving = state_.snapshots.save_tried = false;
  state_.snapshots.save_lacked_room = false;
  state_.snapshots.saved.reset();
  state_.snapshots.manifest.clear();
  state_.snapshots.holders.clear();
}

void JobTransition::Recover(const std::string& cause) {
  const double wait = BackOffSeconds(++state_.setbacks);
  AbortStages(cause);
  DropCheckpoint();
  BeginGeneration();
  ++state_.recoveries;
  state_.phase = JobPhase::kRecovering;
  Say(cause);
  if (wait > 0) {
    absl::StrAppend(&state_.message, "; ", state_.setbacks,
                    " recoveries without a new step, the next attempt is in ", wait, " s");
  }
  Record(JobRecord::Kind::kRecovery, state_.message);
  if (wait > 0) return BackOff(wait);
  FindWeights();
}

// An answer of the generation before may still end the job meanwhile; stages that are lost are one
// less to ask for.
void JobTransition::BackOff(double seconds) {
  state_.activity = Activity::kBackOff;
  state_.stall_seconds = 0;
  state_.deadline_seconds = now_.seconds + seconds;
}

void JobTransition::On(const DeadlinePassed& event) {
  if (state_.deadline_seconds == 0 || now_.seconds < state_.deadline_seconds) return Stale();
  const double extended = LastMoved(event) + state_.stall_seconds;
  if (state_.stall_seconds > 0 && extended > event.heard_seconds) {
    state_.deadline_seconds = extended;  // slow, and not stuck
    return;
  }
  if (state_.snapshots.saving && state_.activity != Activity::kFindSnapshots) {
    return CheckpointFailed(absl::DeadlineExceededError(absl::StrFormat(
        "%s has got no further for %.0f s", ActivityName(state_.activity), state_.stall_seconds)));
  }
  switch (state_.activity) {
    case Activity::kWaitStages:
      if (MaySave()) return StartSave();
      if (TriesUnfitAgain()) return;
      // Whoever was to be asked what it holds is gone since.
      if (now_.seconds < state_.give_up_seconds) return SetWaitDeadline();
      return WaitedTooLong();
    case Activity::kProfile:
      return On(
          Profiled{FenceOf(state_), absl::DeadlineExceededError(absl::StrFormat(
                                        "no operation done for %.0f s", state_.stall_seconds))});
    case Activity::kPlan:
      return Fail(absl::DeadlineExceededError(
          TextAt(absl::StrFormat("the layers were not divided within %.0f s; give the cuts "
                                 "(pipeline.partition)",
                                 state_.limits.effect_deadline_seconds),
                 Place())));
    case Activity::kFindCheckpoint:
    case Activity::kProbeFolder:
    case Activity::kCheckFolder:
    case Activity::kBeginCheckpoint:
    case Activity::kCommit:
    case Activity::kExport:
      return StorageOverdue();
    case Activity::kLoad:
    case Activity::kTrain:
    case Activity::kFlush:
    case Activity::kEvaluate:
    case Activity::kWriteShards:
      return StagesOverdue(event);
    case Activity::kBackOff:
      return FindWeights();
    case Activity::kFindSnapshots:
      return ChooseSnapshot();
    case Activity::kEnded:
    case Activity::kHeld:
      return Stale();
  }
}

void JobTransition::StorageOverdue() {
  StorageFailed(
      TextAt(absl::StrFormat("%s has got no further for %.0f s; is the checkpoint storage stuck?",
                             ActivityName(state_.activity), state_.stall_seconds),
             Place()));
}

// A disk that is away, stuck or answers with errors may come back. Before a job's first step it may
// as well be one that was never mounted well: it has a number of tries.
void JobTransition::StorageFailed(const std::string& text) {
  if (HasRun() || !LoadsTooOften(text)) Recover(text);
}

double JobTransition::LastMoved(const DeadlinePassed& event) const {
  double last = state_.operation_started_seconds;
  const auto look = [&](const StageSlot& slot) {
    const auto signs = event.stages.find(slot.stage.name);
    if (signs != event.stages.end()) last = std::max(last, signs->second.moved_seconds);
  };
  switch (state_.activity) {
    case Activity::kProfile:
      look(state_.slots.front());
      break;
    case Activity::kLoad:
    case Activity::kTrain:
    case Activity::kFlush:
    case Activity::kEvaluate:
    case Activity::kWriteShards:
      for (const StageSlot& slot : state_.slots) {
        if (!slot.answered) look(slot);
      }
      break;
    case Activity::kFindCheckpoint:
    case Activity::kProbeFolder:
    case Activity::kCheckFolder:
    case Activity::kBeginCheckpoint:
    case Activity::kCommit:
    case Activity::kExport:
      last = std::max(last, event.effect_moved_seconds);
      break;
    case Activity::kPlan:  // shows none
    case Activity::kFindSnapshots:
    case Activity::kWaitStages:
    case Activity::kBackOff:
    case Activity::kHeld:
    case Activity::kEnded:
      break;
  }
  return last;
}

void JobTransition::StagesOverdue(const DeadlinePassed& event) {
  const bool loads = state_.activity == Activity::kLoad;
  if (loads && RefusedBeforeFirstRun()) return;
  std::vector<std::string> silent;
  std::set<std::string> stuck;
  for (size_t k = 0; k < state_.slots.size(); ++k) {
    const StageSlot& slot = state_.slots[k];
    if (slot.answered) continue;
    const auto signs = event.stages.find(slot.stage.name);
    const bool known = signs != event.stages.end() && !signs->second.waiting_for.empty();
    silent.push_back(absl::StrCat(StageText(static_cast<int>(k)), " ",
                                  known ? absl::StrCat("says: ", signs->second.waiting_for)
                                        : std::string("says nothing of what it waits for")));
    // Who waits for a neighbour is not to blame.
    if (!known) stuck.insert(slot.stage.name);
    if (!known) Blame(slot.stage.name, "deadline");
  }
  const std::string cause =
      TextAt(absl::StrFormat("no operation done for %.1f s: %s%s", now_.seconds - LastMoved(event),
                             absl::StrJoin(silent, "; "), loads ? LeaveRefusersAside() : ""),
             Place());
  const bool computes = !loads && state_.activity != Activity::kWriteShards;
  if (stuck.size() == 1 && computes) return StageFailed(stuck, cause);
  // Files that stand still stand still for all who use them; and of many at once none is the one to
  // blame.
  state_.suspects.insert(state_.suspects.end(), stuck.begin(), stuck.end());
  Recover(cause);
}

// The line that goes on with as many stages as are there.
std::string JobTransition::GoesOnText() const {
  if (state_.furthest_step == 0) return "";
  if (state_.last_checkpoint_step < 0) return "; it has no checkpoint to go on from";
  std::string text = absl::StrCat("; to go on from step ", state_.last_checkpoint_step);
  // Devices in their places are all needed.
  const bool fewer = !spec().pipeline.mixed_devices && state_.ready_stages >= LeastStages(state_);
  if (!fewer) return absl::StrCat(text, " when they are back:  stagecoach resume ", state_.job->id);
  return absl::StrCat(text, " with those that are ready:  stagecoach resume ", state_.job->id,
                      " --stages ", std::min(state_.ready_stages, layers()));
}

void JobTransition::WaitedTooLong() {
  const double timeout = spec().pipeline.replacement_timeout_seconds;
  if (spec().pipeline.continue_with_fewer_stages && !state_.accepts_fewer) {
    state_.accepts_fewer = true;
    state_.deadline_seconds = state_.give_up_seconds = now_.seconds + timeout;
    return;
  }
  const bool least = state_.wanted_stages == 0 || state_.accepts_fewer;
  const int wanted = least ? LeastStages(state_) : state_.wanted_stages;
  const int missing = std::max(1, wanted - state_.ready_stages);
  std::string remedy = "start more stage servers";
  if (!state_.unfit.empty()) remedy = absl::StrCat("mount it there and restart them, or ", remedy);
  if (!spec().pipeline.continue_with_fewer_stages) {
    remedy += ", or set pipeline.continue_with_fewer_stages";
  }
  remedy += GoesOnText();
  const std::string found = absl::StrFormat(
      "%d %s missing after %.1f s (wanted %d, ready %d%s)", missing,
      missing == 1 ? "stage is" : "stages are", timeout, wanted, state_.ready_stages,
      state_.unfit.empty() ? "" : absl::StrCat(", ", UnfitText()));
  Fail(absl::UnavailableError(absl::StrCat(TextAt(found, Place()), "; ", remedy)));
}

void JobTransition::On(const CancelRequested&) {
  AbortStages("the job was cancelled");
  DropCheckpoint();
  End(JobPhase::kCancelled, "cancelled");
}

void JobTransition::Fail(const absl::Status& status) {
  AbortStages(std::string(status.message()));
  DropCheckpoint();
  End(JobPhase::kFailed,
      absl::StrCat(absl::StatusCodeToString(status.code()), ": ", std::string(status.message())));
}

void JobTransition::End(JobPhase phase, const std::string& message) {
  for (const StageSlot& slot : state_.slots) {
    actions_.push_back(SendRelease{slot.stage, FenceOf(state_)});
  }
  ReleaseLeft();
  state_.phase = phase;
  state_.activity = Activity::kEnded;
  Say(message);
  state_.deadline_seconds = 0;
  state_.pending.reset();
  state_.snapshots = {};
  state_.finished_unix_seconds = now_.unix_seconds;
  JobRecord& record = Record(JobRecord::Kind::kFinished, message);
  const bool no_loss = state_.step > 0 && !state_.has_loss;
  record.loss = no_loss ? std::numeric_limits<double>::quiet_NaN() : state_.last_loss;
  record.weights_digest = state_.weights_digest;
}

}  // namespace stagecoach
