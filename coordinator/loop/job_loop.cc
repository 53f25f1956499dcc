#include "coordinator/loop/job_loop.h"

#include <algorithm>
#include <utility>

#include "base/errors/check.h"
#include "coordinator/job/view/record_page.h"
#include "coordinator/loop/performer.h"

namespace stagecoach {
namespace {

// Records of steps and texts may wait so long to share one transaction; watchers see a record once
// it is on disk.
constexpr double kGroupCommitSeconds = 0.05;
constexpr double kFolderCheckSeconds = 1;  // while nothing is written

// A lost step record costs nothing: a crash repeats the step as well. So it is with texts, whose
// mini-batch begins anew.
bool MayWait(JobRecord::Kind kind) {
  return kind == JobRecord::Kind::kStep || kind == JobRecord::Kind::kWritten;
}

// What a coordinator that drains sends no more of: it ends between two of them.
bool GoesOn(WorkKind work) { return work == WorkKind::kTrain || work == WorkKind::kWrite; }

// Nothing has ended the operation of this command.
bool IsAtHand(const JobState& state, const JobAction& command) {
  return state.activity == Activity::kWrite &&
         std::get<SendRun>(command).command.fence == FenceOf(state);
}

}  // namespace

JobLoop::JobLoop(Parts parts)
    : parts_(std::move(parts)),
      inbox_(std::make_shared<Inbox>(Inbox{this, parts_.outside.clock, parts_.post})),
      term_(parts_.term),
      fleet_(parts_.options.lease_seconds),
      ended_(parts_.options.keep_ended_jobs, parts_.options.keep_ended_days),
      watches_(parts_.journal, parts_.post,
               [this](const std::string& id) { return OutlookOf(id); }),
      checks_(parts_.check, parts_.post) {}

Moment JobLoop::Now() const {
  const Clock& clock = *parts_.outside.clock;
  return {clock.MonotonicSeconds(), clock.UnixSeconds()};
}

JobLoop::Job* JobLoop::Find(const std::string& id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

const JobLoop::Job* JobLoop::Find(const std::string& id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

std::vector<std::string> JobLoop::LiveJobs() const {
  std::vector<std::string> live;
  for (const auto& [id, job] : jobs_) {
    if (!IsTerminal(job.state.phase)) live.push_back(id);
  }
  return live;
}

void JobLoop::Deliver(JobEvent event) {
  Job* const job = Find(event.job);
  if (job == nullptr) return DropLate(event);
  const double deadline = job->state.operation.deadline_seconds;
  const size_t slots = job->state.slots.size();
  absl::StatusOr<Transition> transition = Apply(std::move(job->state), event);
  CHECK(transition.ok()) << transition.status();
  if (HiddenPlaces::Concern(*transition)) PlacesToHide().Hide(&*transition);
  // A checkpoint takes the steps in front of it out of what a crash repeats.
  const bool durable =
      std::any_of(transition->records.begin(), transition->records.end(),
                  [](const JobRecord& r) { return !MayWait(r.kind); }) ||
      std::any_of(transition->actions.begin(), transition->actions.end(),
                  [](const JobAction& a) { return std::holds_alternative<CommitCheckpoint>(a); });
  job->state = std::move(transition->state);
  if (!job->held_back.empty() && !IsAtHand(job->state, job->held_back.front())) {
    job->held_back.clear();
  }
  if (!transition->records.empty()) {
    for (const JobRecord& record : transition->records) {
      job->unwritten_text_bytes += TextBytes(record);
    }
    job->unwritten.insert(job->unwritten.end(), transition->records.begin(),
                          transition->records.end());
    unwritten_.insert(event.job);
    DropOldestSteps(*job, transition->records);
    if (flush_due_seconds_ == 0) flush_due_seconds_ = Now().seconds + kGroupCommitSeconds;
  }
  // Persist first, then act.
  if (durable) Flush();

  // Stages come with an offer only, and go one by one or with the end.
  const bool ended = IsTerminal(job->state.phase);
  if (ended || slots != job->state.slots.size() ||
      std::holds_alternative<StagesOffered>(event.kind)) {
    HoldStages(*job);
  }
  // Not before the end is on disk: a next coordinator would take the job up, and want its start.
  if (ended && job->unwritten.empty()) pins_->Release(event.job);
  if (WaitsForStages(job->state)) placement_due_ = true;

  StartLate(&job->state, deadline, Now().seconds - event.now.seconds);
  Perform(*job, transition->actions);
}

HiddenPlaces JobLoop::PlacesToHide() const {
  HiddenPlaces places;
  places.AddFolder(parts_.outside.checkpoints->root(), "CHECKPOINTS");
  places.AddFolder(parts_.options.state_folder, "STATE");
  for (const StageView& stage : fleet_.View()) {
    places.AddAddress(stage.registration.address, stage.registration.name);
  }
  return places;
}

void JobLoop::HoldStages(const Job& job) {
  std::vector<std::string> held;
  if (!IsTerminal(job.state.phase)) {
    for (const StageSlot& slot : job.state.slots) held.push_back(slot.stage.name);
  }
  if (fleet_.Hold(job.state.job->id, held)) placement_due_ = true;
}

void JobLoop::Perform(Job& job, const std::vector<JobAction>& actions) {
  const bool too_many_texts = job.unwritten_text_bytes > parts_.options.max_unwritten_text_bytes;
  const Performer performer(*this, job);
  for (const JobAction& action : actions) {
    const SendRun* const run = std::get_if<SendRun>(&action);
    if (draining_ && run != nullptr && GoesOn(run->command.work)) {
      stopped_.insert(job.state.job->id);  // the next coordinator takes the job up again
      continue;
    }
    if (too_many_texts && run != nullptr && run->command.work == WorkKind::kWrite) {
      job.held_since_seconds = Now().seconds;
      job.held_back.push_back(action);
      continue;
    }
    std::visit(performer, action);
  }
}

void JobLoop::SendHeldBack(Job& job) {
  if (job.held_back.empty()) return;
  StartLater(&job.state, Now().seconds - job.held_since_seconds);
  Perform(job, std::exchange(job.held_back, {}));
}

// Where no stage was told of the operation at hand, none is late with it.
double JobLoop::DeadlineOf(const std::string& id, const Job& job) const {
  const bool stands_still = stopped_.contains(id) || !job.held_back.empty();
  return stands_still ? BesideDeadline(job.state) : NextDeadline(job.state);
}

void JobLoop::Drain(bool save, std::function<void()> drained) {
  draining_ = true;
  drained_ = std::move(drained);
  for (auto& [id, job] : jobs_) {
    if (!std::exchange(job.held_back, {}).empty()) stopped_.insert(id);
  }
  if (!save) return;
  for (const std::string& id : LiveJobs()) Deliver({id, Now(), SaveRequested{}});
}

bool JobLoop::Drained() const {
  return std::all_of(jobs_.begin(), jobs_.end(), [this](const auto& entry) {
    const JobState& state = entry.second.state;
    if (BesideDeadline(state) > 0) return false;
    const bool under_way = TraitsOf(state.activity).ends_first || state.snapshots.save.on;
    return !under_way || stopped_.contains(entry.first);
  });
}

uint64_t JobLoop::EffectsNumber(const std::string& job) const {
  if (const Job* const live = Find(job); live != nullptr) return live->state.job->sequence;
  const EndedJobs::Job* const ended = ended_.Find(job);
  // Nobody works in the folder of a job that is not known: any constant will do.
  return ended == nullptr ? 0 : ended->sequence;
}

void JobLoop::LookAtEffects(Job& job, double now_seconds) {
  // A search runs with what touches the folder that it looks into.
  const bool elsewhere =
      job.state.activity == Activity::kFindCheckpoint && !job.state.origin.searches_own;
  const uint64_t number =
      elsewhere ? EffectsNumber(job.state.job->spec.resume.job) : job.state.job->sequence;
  const uint64_t progress = parts_.effect_progress(number);
  if (std::exchange(job.effect_progress, progress) != progress) {
    job.effect_moved_seconds = now_seconds;
  }
}

DeadlinePassed JobLoop::SignsOf(const Job& job, double heard_seconds) const {
  DeadlinePassed passed;
  passed.heard_seconds = heard_seconds;
  for (const StageSlot& slot : job.state.slots) {
    passed.stages[slot.stage.name] = fleet_.SignsOf(slot.stage.name);
  }
  passed.effect_moved_seconds = job.effect_moved_seconds;
  return passed;
}

void JobLoop::Tick(double heard_seconds) {
  const Moment now = Now();
  DeliverLost(fleet_.Expire(heard_seconds));
  std::vector<std::string> due;
  for (auto& [id, job] : jobs_) {
    const double deadline = DeadlineOf(id, job);
    if (deadline == 0) continue;
    LookAtEffects(job, now.seconds);
    if (heard_seconds >= deadline) due.push_back(id);
  }
  for (const std::string& id : due) Deliver({id, now, SignsOf(*Find(id), heard_seconds)});
  if (flush_due_seconds_ > 0 && now.seconds >= flush_due_seconds_) {
    Flush();
    // Without jobs nothing else shows that the journal can be written again.
    if (trouble_.has_value()) RaiseTerm();
  }
  if (now.seconds >= folder_checked_seconds_ + kFolderCheckSeconds) OwnsFolder().IgnoreError();
  Settle();
  RetireEnded();
  RetryRemovals();
  PurgeEnded();
  if (!drained_ || !Drained()) return;
  // Who watches hears of the last step before: the flush posts it, and this is behind it.
  Flush();
  parts_.post(std::exchange(drained_, nullptr));
}

double JobLoop::NextTickSeconds() const {
  if (drained_ && Drained()) return 0;
  double next = fleet_.NextExpirySeconds();
  for (const auto& [id, job] : jobs_) {
    const double deadline = DeadlineOf(id, job);
    if (deadline > 0) next = std::min(next, deadline);
  }
  if (flush_due_seconds_ > 0) next = std::min(next, flush_due_seconds_);
  if (PurgeWanted()) next = std::min(next, purge_due_seconds_);
  next = std::min(next, NextRetrySeconds());
  return next;
}

void JobLoop::Close() {
  Flush();
  for (const std::string& id : unwritten_) {
    if (parts_.outside.on_journal) parts_.outside.on_journal(NotOnDisk(*Find(id)));
  }
  const absl::Status reason = absl::UnavailableError("the coordinator is shutting down");
  for (const auto& [ticket, submission] : submitting_) submission.done(reason);
  submitting_.clear();
  for (const auto& [ticket, planning] : planning_) planning.done(reason);
  planning_.clear();
  EndRemovals(reason);
  watches_.End(reason);
}

}  // namespace stagecoach
