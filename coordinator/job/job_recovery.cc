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

// It had a place in the generation of this fence, which is the one at hand or the one before.
bool WorkedAt(const JobState& state, const Fence& fence, const std::string& stage_name) {
  const FormerGeneration& former = state.failures.former;
  if (CompareIncarnation(fence, former.fence) == 0) {
    return std::find(former.stages.begin(), former.stages.end(), stage_name) != former.stages.end();
  }
  return CompareIncarnation(fence, FenceOf(state)) == 0 &&
         std::any_of(state.slots.begin(), state.slots.end(),
                     [&](const StageSlot& slot) { return slot.stage.name == stage_name; });
}

void NoteFormer(JobState& state, const StageSlot& slot) {
  std::vector<std::string>& names = state.failures.former.stages;
  names.resize(std::max<size_t>(names.size(), static_cast<size_t>(slot.place) + 1));
  names[static_cast<size_t>(slot.place)] = slot.stage.name;
}

// Of what the operation waits for.
double LastMoved(const JobState& state, const DeadlinePassed& event) {
  double last = state.operation.started_seconds;
  const WaitsFor waits_for = TraitsOf(state.activity).waits_for;
  if (waits_for == WaitsFor::kFiles) last = std::max(last, event.effect_moved_seconds);
  for (const StageSlot& slot : state.slots) {
    const bool waited = waits_for == WaitsFor::kStages
                            ? !slot.answered
                            : waits_for == WaitsFor::kFirstStage && &slot == &state.slots.front();
    const auto signs = event.stages.find(slot.stage.name);
    if (waited && signs != event.stages.end()) last = std::max(last, signs->second.moved_seconds);
  }
  return last;
}

// The line that goes on with as many stages as are there.
std::string GoesOnText(const JobState& state) {
  if (state.furthest_step == 0 || Writes(state)) return "";
  if (state.checkpoints.last.step < 0) return "; it has no checkpoint to go on from";
  std::string text = absl::StrCat("; to go on from step ", state.checkpoints.last.step);
  // Devices in their places are all needed.
  const bool fewer =
      !state.job->spec.pipeline.mixed_devices && state.stages.ready_count >= LeastStages(state);
  if (!fewer) return absl::StrCat(text, " when they are back:  stagecoach resume ", state.job->id);
  return absl::StrCat(text, " with those that are ready:  stagecoach resume ", state.job->id,
                      " --stages ", std::min<int64_t>(state.stages.ready_count,
                                         MostStages(state.job->spec.pipeline, LayersOf(state))));
}

// Last of all, as suspects, and with no other they have to answer once more.
bool TriesUnfitAgain(JobState& state, double now) {
  JobStages& stages = state.stages;
  if (stages.unfit.empty() || now >= stages.give_up_seconds) return false;
  for (const StageProcess& stage : stages.unfit) stages.suspects.push_back(stage.name);
  stages.unfit.clear();
  state.operation.deadline_seconds = stages.give_up_seconds;
  return true;
}

}  // namespace

void JobTransition::OperationFailed(int stage, const absl::Status& status) {
  FailedAt(stage, status, state_.activity, Place(state_, stage));
}

void JobTransition::FailedAt(int stage, const absl::Status& status, Activity activity,
                             const std::string& place) {
  const StageRegistration& who = state_.slots[stage].stage;
  const FailureClass failure = ClassOf(activity, status, HasRun(state_));
  if (failure == FailureClass::kJob) return Fail(AnnotateAt(status, place));
  if (absl::IsUnavailable(status)) {
    // Dead, or its neighbour is: its next heartbeat tells.
    actions_.push_back(DoubtStage{who.name, who.incarnation});
  }
  Blame(state_, who.name, absl::IsUnavailable(status) ? "unavailable" : "error");
  const std::string cause = TextAt(status.ToString(), place);
  if (failure == FailureClass::kStage) return StageFailed({who.name}, cause);
  // Nobody's fault, but where there is another stage, that one may have the better connection.
  if (state_.failures.setbacks >= kTriesWithAll) state_.stages.suspects.push_back(who.name);
  Recover(cause);
}

bool IsOfLastGeneration(const JobState& state, const Fence& fence) {
  const Fence& former = state.failures.former.fence;
  return fence.term == former.term && fence.generation == former.generation &&
         state.activity != Activity::kHeld;
}

// A stage that fails for a reason of its own breaks its links, and its neighbours may be heard
// first, with nothing to tell but a broken link. By then its answer is one to the generation
// before; what it says of job and step is so in this one too.
void JobTransition::LateFailure(const Reported& event) {
  const absl::Status& status = event.report.status();
  const uint64_t step = StepOf(state_, event.fence);
  const std::string place =
      absl::StrCat("job ", state_.job->id, ", step ", step, ", stage ", event.stage);
  const std::string cause = TextAt(status.ToString(), place);
  const FailureClass failure = ClassOf(Activity::kTrain, status, HasRun(state_));
  if (failure == FailureClass::kJob) return Fail(AnnotateAt(status, place));
  if (failure == FailureClass::kWorld ||
      state_.failures.counted_generation == event.fence.generation) {
    return Stale();
  }
  std::set<std::string> names;
  const std::vector<std::string>& former = state_.failures.former.stages;
  if (event.stage >= 0 && event.stage < std::ssize(former)) names.insert(former[event.stage]);
  for (const std::string& name : names) Blame(state_, name, "error");
  state_.stages.suspects.insert(state_.stages.suspects.end(), names.begin(), names.end());
  state_.failures.counted_generation = event.fence.generation;
  Record(JobRecord::Kind::kRecovery, absl::StrCat("the reason: ", cause));
  IsPoison(names, step, cause);
}

bool JobTransition::IsPoison(const std::set<std::string>& stages, uint64_t step,
                             const std::string& cause) {
  StepFailures& failed = state_.failures.steps[step];
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
  const int64_t failed = ++state_.failures.loads;
  if (failed < kLoadFailureFactor * state_.limits.max_failures_per_step) return false;
  Fail(absl::AbortedError(
      absl::StrCat("loading failed ", failed, " times in a row; last: ", cause)));
  return true;
}

void JobTransition::StageFailed(const std::set<std::string>& stages, const std::string& cause) {
  state_.stages.suspects.insert(state_.stages.suspects.end(), stages.begin(), stages.end());
  state_.failures.counted_generation = state_.generation;
  const bool ended =
      IsOfLoad(state_.activity) ? LoadsTooOften(cause) : IsPoison(stages, state_.step, cause);
  if (!ended) Recover(cause);
}

void Blame(JobState& state, const std::string& stage_name, const char* reason) {
  std::vector<StageFaults>& faults = state.results.faults;
  auto found = std::find_if(faults.begin(), faults.end(), [&](const StageFaults& of) {
    return of.stage_name == stage_name && of.reason == reason;
  });
  if (found == faults.end()) found = faults.insert(faults.end(), {stage_name, reason, 0});
  ++found->count;
}

void JobTransition::On(const StageLost& event) {
  const auto found =
      std::find_if(state_.slots.begin(), state_.slots.end(), [&](const StageSlot& slot) {
        return slot.stage.name == event.name && slot.stage.incarnation == event.incarnation;
      });
  if (found == state_.slots.end()) return Stale();
  if (state_.snapshots.save.on) {  // what the others hold may be enough
    state_.slots.erase(found);
    state_.snapshots.save.tried = false;
    if (state_.activity == Activity::kCommit)
      return;  // its shards are on the disk; the commit may fail
    DropCheckpoint();
    return EndSave();
  }
  const std::string cause = TextAt(
      absl::StrCat("lost stage ", found - state_.slots.begin(), ": ", event.reason), Place(state_));
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
  Blame(state_, event.name, "lost");
  Recover(cause);
  NoteFormer(state_, lost);
}

// By then the stage is lost, and the job recovers or has gone on elsewhere. A stage may tell
// anything of any job: what counts is said by one that had a place in this generation or the one
// before, which is as late as a restart is.
void JobTransition::On(const StageDied& event) {
  const Fence& fence = event.death.fence;
  StageDeaths& deaths = state_.failures.deaths;
  const Fence counted{.term = deaths.term, .generation = deaths.generation};
  const uint64_t step = StepOf(state_, fence);
  const bool counts = WorkedAt(state_, fence, event.name) && step <= state_.furthest_step &&
                      CompareIncarnation(fence, counted) > 0;
  const bool done = state_.activity == Activity::kHeld || state_.activity == Activity::kExport;
  if (!counts || done) return Stale();
  const bool again =
      deaths.count > 0 && deaths.step == step && deaths.instruction == event.death.instruction;
  if (!again) deaths = {.step = step, .instruction = event.death.instruction};
  ++deaths.count;
  deaths.stages.insert(event.name);
  deaths.term = fence.term;
  deaths.generation = fence.generation;
  state_.stages.suspects.push_back(event.name);
  const std::string text = absl::StrCat("stage ", event.name, " ended by ", DeathText(event.death));
  Record(JobRecord::Kind::kRecovery, absl::StrCat("the reason: ", text));
  if (deaths.count < state_.limits.max_failures_per_step) return;
  Fail(absl::AbortedError(TextAt(
      absl::StrCat(text, "; ", deaths.count,
                   " times in a row a process ended so at this step and instruction, on ",
                   absl::StrJoin(deaths.stages, " and "), "; its log, or a core dump, says where"),
      Place(state_))));
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
  if (state_.activity == Activity::kBackOff) state_.operation.deadline_seconds = now_.seconds;
  Record(JobRecord::Kind::kState, event.why);
}

void BeginGeneration(JobState& state) {
  state.failures.former = {.fence = FenceOf(state)};
  for (const StageSlot& slot : state.slots) {
    if (state.snapshots.taken) state.snapshots.left.insert(slot.stage);
    NoteFormer(state, slot);
  }
  ++state.generation;
  state.term = std::max(state.term, state.raised_term);
  state.attempt = 0;
  state.pending.reset();
  state.source = {};
  JobSnapshots& snapshots = state.snapshots;
  std::optional<uint64_t>& taken_step = snapshots.load.taken_step;
  if (taken_step.has_value() && taken_step != snapshots.load.whole_step) ++snapshots.unfinished;
  taken_step.reset();
  snapshots.asked = false;
  snapshots.save = {};
}

void JobTransition::Recover(const std::string& cause) {
  const double wait = BackOffSeconds(++state_.failures.setbacks);
  AbortStages(cause);
  DropCheckpoint();
  BeginGeneration(state_);
  ++state_.results.recoveries;
  state_.phase = JobPhase::kRecovering;
  Say(cause);
  if (wait > 0) {
    absl::StrAppend(&state_.message, "; ", state_.failures.setbacks,
                    " recoveries without a new step, the next attempt is in ", wait, " s");
  }
  Record(JobRecord::Kind::kRecovery, state_.message);
  if (wait == 0) return FindWeights();
  // An answer of the generation before may still end the job meanwhile; stages that are lost are
  // one less to ask for.
  Rest(Activity::kBackOff);
  state_.operation.deadline_seconds = now_.seconds + wait;
}

void JobTransition::On(const DeadlinePassed& event) {
  const double beside = BesideDeadline(state_);
  if (beside != 0 && now_.seconds >= beside) return BesideOverdue(event);
  double& deadline = state_.operation.deadline_seconds;
  if (deadline == 0 || now_.seconds < deadline) return Stale();
  const double stall = state_.operation.stall_seconds;
  const double extended = LastMoved(state_, event) + stall;
  if (stall > 0 && extended > event.heard_seconds) {
    deadline = extended;  // slow, and not stuck
    return;
  }
  if (state_.snapshots.save.on && state_.activity != Activity::kFindSnapshots) {
    return CheckpointFailed(absl::DeadlineExceededError(
        absl::StrFormat("%s has got no further for %.0f s", ActivityName(state_.activity), stall)));
  }
  switch (state_.activity) {
    case Activity::kWaitStages:
      if (MaySave(state_, now_.seconds)) return StartSave();
      if (TriesUnfitAgain(state_, now_.seconds)) return;
      // Whoever was to be asked what it holds is gone since.
      if (now_.seconds < state_.stages.give_up_seconds)
        return SetWaitDeadline(state_, now_.seconds);
      return WaitedTooLong();
    case Activity::kProfile:
      return On(Profiled{FenceOf(state_), absl::DeadlineExceededError(absl::StrFormat(
                                              "no operation done for %.0f s", stall))});
    case Activity::kPlan:
      return Fail(absl::DeadlineExceededError(
          TextAt(absl::StrFormat("the layers were not divided within %.0f s; give the cuts "
                                 "(pipeline.partition)",
                                 state_.limits.effect_deadline_seconds),
                 Place(state_))));
    case Activity::kBackOff:
      return FindWeights();
    case Activity::kFindSnapshots:
      return ChooseSnapshot();
    default:
      break;
  }
  if (TraitsOf(state_.activity).waits_for != WaitsFor::kFiles) return StagesOverdue(event);
  StorageFailed(
      TextAt(absl::StrFormat("%s has got no further for %.0f s; is the checkpoint storage stuck?",
                             ActivityName(state_.activity), stall),
             Place(state_)));
}

// A disk that is away, stuck or answers with errors may come back. Before a job's first step it may
// as well be one that was never mounted well: it has a number of tries.
void JobTransition::StorageFailed(const std::string& text) {
  if (HasRun(state_) || !LoadsTooOften(text)) Recover(text);
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
    silent.push_back(absl::StrCat(StageText(state_, static_cast<int>(k)), " ",
                                  known ? absl::StrCat("says: ", signs->second.waiting_for)
                                        : std::string("says nothing of what it waits for")));
    // A stage that waits for a neighbour is not to blame. One that loads waits for none.
    if (known && !signs->second.loads) continue;
    stuck.insert(slot.stage.name);
    Blame(state_, slot.stage.name, "deadline");
  }
  const std::string cause = TextAt(
      absl::StrFormat("no operation done for %.1f s: %s%s", now_.seconds - LastMoved(state_, event),
                      absl::StrJoin(silent, "; "), loads ? LeaveRefusersAside() : ""),
      Place(state_));
  const bool computes = !loads && state_.activity != Activity::kWriteShards;
  if (stuck.size() == 1 && computes) return StageFailed(stuck, cause);
  // Files that stand still stand still for all who use them; and of many at once none is the one to
  // blame.
  state_.stages.suspects.insert(state_.stages.suspects.end(), stuck.begin(), stuck.end());
  Recover(cause);
}

void JobTransition::WaitedTooLong() {
  const double timeout = spec().pipeline.replacement_timeout_seconds;
  JobStages& stages = state_.stages;
  if (spec().pipeline.continue_with_fewer_stages && !stages.accepts_fewer) {
    stages.accepts_fewer = true;
    state_.operation.deadline_seconds = stages.give_up_seconds = now_.seconds + timeout;
    return;
  }
  const bool least = stages.wanted == 0 || stages.accepts_fewer;
  const int wanted = least ? LeastStages(state_) : stages.wanted;
  const int missing = std::max(1, wanted - stages.ready_count);
  std::string remedy = "start more stage servers";
  if (!stages.unfit.empty()) remedy = absl::StrCat("mount it there and restart them, or ", remedy);
  if (!spec().pipeline.continue_with_fewer_stages) {
    remedy += ", or set pipeline.continue_with_fewer_stages";
  }
  remedy += GoesOnText(state_);
  const std::string found =
      absl::StrFormat("%d %s missing after %.1f s (wanted %d, ready %d%s)", missing,
                      missing == 1 ? "stage is" : "stages are", timeout, wanted, stages.ready_count,
                      stages.unfit.empty() ? "" : absl::StrCat(", ", UnfitText(state_)));
  Fail(absl::UnavailableError(absl::StrCat(TextAt(found, Place(state_)), "; ", remedy)));
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
  Rest(Activity::kEnded);
  Say(message);
  state_.pending.reset();
  state_.snapshots = {};
  state_.results.finished_unix_seconds = now_.unix_seconds;
  JobRecord& record = Record(JobRecord::Kind::kFinished, message);
  const bool no_loss = state_.step > 0 && !state_.results.has_loss;
  record.loss = no_loss ? std::numeric_limits<double>::quiet_NaN() : state_.results.loss;
  record.weights_digest = state_.results.weights_digest;
}

}  // namespace stagecoach
