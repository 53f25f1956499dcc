#include "coordinator/loop/job_loop.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/job_name.h"
#include "base/utf8.h"
#include "coordinator/job/job_json.h"
#include "coordinator/job/resume_check.h"
#include "coordinator/job/view/shown_json.h"
#include "coordinator/loop/moved_run.h"
#include "coordinator/loop/performer.h"

namespace stagecoach {
namespace {

// Step records may wait so long to share one transaction; watchers see a record once it is on disk.
constexpr double kGroupCommitSeconds = 0.05;
constexpr uint64_t kThinEvery = 1000;      // records
constexpr double kFolderCheckSeconds = 1;  // while nothing is written

// But for the network.
JobDefinition DefinitionOf(const JournalJob& entry, const JobSpec& spec) {
  JobDefinition definition;
  definition.id = entry.id;
  definition.sequence = entry.sequence;
  definition.spec = spec;
  definition.submitted_unix_seconds = entry.submitted_unix_seconds;
  definition.owner = entry.owner;
  return definition;
}

}  // namespace

uint64_t LeastTerm(const Clock& clock) {
  constexpr int64_t kNanosPerMilli = 1'000'000;
  return static_cast<uint64_t>(std::max<int64_t>(0, clock.UnixNanos() / kNanosPerMilli));
}

JobLoop::JobLoop(Parts parts)
    : parts_(std::move(parts)),
      inbox_(std::make_shared<Inbox>(Inbox{this, parts_.outside.clock, parts_.post})),
      term_(parts_.term),
      fleet_(parts_.options.lease_seconds),
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

absl::Status JobLoop::MoveJobs() {
  const std::string& now = parts_.options.state_folder;
  ASSIGN_OR_RETURN(const std::string before, parts_.journal->Place());
  if (before == now) return absl::OkStatus();
  const MovedRun moved(before, now, parts_.outside.file_system);
  std::map<std::string, JobSpec> specs;
  RETURN_IF_ERROR(parts_.journal->EachJob([&](const JournalJob& entry) {
    absl::StatusOr<JobSpec> spec = parts_.outside.codec->Decode(entry.spec);
    if (entry.intact && spec.ok() && moved.Move(&*spec)) specs[entry.id] = *std::move(spec);
  }));
  for (const auto& [id, spec] : specs) {
    RETURN_IF_ERROR(parts_.journal->SetSpec(id, parts_.outside.codec->Encode(spec)));
  }
  return parts_.journal->SetPlace(now);
}

std::string JobLoop::ExportFolder(const std::string& job) const {
  return absl::StrCat(parts_.options.state_folder, "/exports/", job);
}

absl::Status JobLoop::Open() {
  RETURN_IF_ERROR(MoveJobs());
  std::vector<std::pair<uint64_t, std::string>> ids;  // by sequence
  RETURN_IF_ERROR(parts_.journal->EachJob([&](const JournalJob& entry) {
    ids.emplace_back(entry.sequence, entry.id);
    next_sequence_ = std::max(next_sequence_, entry.sequence + 1);
    if (absl::Status status = AddFromJournal(entry); !status.ok()) SetAside(entry, status);
  }));
  if (parts_.outside.on_unknown_jobs) {
    const std::vector<std::string> unknown = UnknownJobs();
    if (!unknown.empty()) parts_.outside.on_unknown_jobs(unknown);
  }
  // Before anything else of a job touches its folder. Those that go on come first.
  const auto sweep = [this](uint64_t sequence, const std::string& id) {
    parts_.effect(sequence, [store = parts_.outside.checkpoints, id, term = term_] {
      store->SweepTemporary(id, term);
    });
  };
  for (const auto& [sequence, id] : ids) {
    if (Find(id) == nullptr) continue;
    sweep(sequence, id);
    Deliver({id, Now(), JobOpened{term_, true, parts_.options.hold_jobs}});
  }
  for (const auto& [sequence, id] : ids) {
    if (Find(id) == nullptr) sweep(sequence, id);
  }
  return absl::OkStatus();
}

std::vector<std::string> JobLoop::UnknownJobs() const {
  std::set<std::string> names;
  for (std::string& name : parts_.outside.checkpoints->Jobs()) names.insert(std::move(name));
  const auto records =
      parts_.outside.file_system->List(absl::StrCat(parts_.options.state_folder, "/jobs"));
  if (records.ok()) {
    for (const std::string& name : *records) {
      if (IsJobName(name)) names.insert(name);
    }
  }
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    if (Known(name)) continue;
    const absl::StatusOr<bool> forgot = parts_.journal->Forgot(name);
    if (!forgot.ok() || !*forgot) unknown.push_back(name);
  }
  return unknown;
}

// What cannot be read, perhaps because a newer version wrote it, must not keep the others down. The
// entry stays in the journal as it is, and so does its id: nothing of it is ever written again.
void JobLoop::SetAside(const JournalJob& entry, const absl::Status& why) {
  auto definition = std::make_shared<JobDefinition>();
  definition->id = definition->spec.name = ShownName(entry.id);
  definition->sequence = entry.sequence;
  definition->submitted_unix_seconds = entry.submitted_unix_seconds;
  definition->owner = entry.owner;
  JobState state = NewJobState(std::move(definition), term_, LimitsOf(parts_.options));
  state.phase = JobPhase::kFailed;
  state.message = absl::StrCat(
      ShownText(why.ToString()),
      "; this job's journal entry is kept as it is and set aside until a version that can read it "
      "is started; to go on from its checkpoints, submit its spec under another name with resume: "
      "{job: ",
      ShownName(entry.id), "}");
  JobView view = ViewOf(state);
  view.spec = nullptr;
  view.network = nullptr;
  view.set_aside = true;
  ended_[entry.id] = {entry.sequence, Sha256Hex(entry.spec),
                      std::make_shared<const JobView>(std::move(view))};
}

absl::Status JobLoop::AddFromJournal(const JournalJob& entry) {
  if (!IsJobName(entry.id)) {
    return absl::DataLossError(
        absl::StrCat("journal: the id ", ShownName(entry.id), " is not ", kJobNameRule));
  }
  if (!entry.intact) {
    return absl::DataLossError(
        "journal: this entry has another checksum than it was written with, so bits of the file "
        "have "
        "changed; restore the journal from a backup");
  }
  ASSIGN_OR_RETURN(const JobSpec spec, parts_.outside.codec->Decode(entry.spec));
  const JobLimits limits = LimitsOf(parts_.options);
  // Of a job that has ended nobody wants the network, which may be large.
  auto definition = std::make_shared<JobDefinition>(DefinitionOf(entry, spec));
  JobState state = NewJobState(definition, term_, limits);
  if (!entry.state.empty()) RETURN_IF_ERROR(DecodeJobState(entry.state, &state));
  if (!state.weights_folder.empty() && !parts_.options.only_shows) {
    state.weights_folder = ExportFolder(entry.id);  // it may have moved
  }
  if (IsTerminal(state.phase)) {
    AddEnded(state, TextOf(entry.spec));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Network network, ExpandJob(spec));
  state.job = Define(entry, spec, std::move(network));
  ASSIGN_OR_RETURN(state.records, parts_.journal->LastNumber(entry.id));
  PinResumed(state);
  Job job;
  job.text = TextOf(entry.spec);
  live_spec_bytes_ += job.text.bytes;
  job.phase_on_disk = state.phase;
  job.step_on_disk = state.step;
  job.state = std::move(state);
  jobs_.emplace(entry.id, std::move(job));
  return absl::OkStatus();
}

std::shared_ptr<const JobDefinition> JobLoop::Define(const JournalJob& entry, const JobSpec& spec,
                                                     Network network) const {
  auto definition = std::make_shared<JobDefinition>(DefinitionOf(entry, spec));
  definition->secret = parts_.journal->secret();
  definition->model_sha256 = ModelSha256(network);
  definition->network = std::move(network);
  return definition;
}

void JobLoop::Deliver(JobEvent event) {
  Job* const job = Find(event.job);
  if (job == nullptr) return DropLate(event);
  const double deadline = job->state.deadline_seconds;
  const size_t slots = job->state.slots.size();
  absl::StatusOr<Transition> transition = Apply(std::move(job->state), event);
  CHECK(transition.ok()) << transition.status();
  HidePlaces(&*transition);
  // A checkpoint takes the steps in front of it out of what a crash repeats.
  const bool durable =
      std::any_of(transition->records.begin(), transition->records.end(),
                  [](const JobRecord& r) { return r.kind != JobRecord::Kind::kStep; }) ||
      std::any_of(transition->actions.begin(), transition->actions.end(),
                  [](const JobAction& a) { return std::holds_alternative<CommitCheckpoint>(a); });
  job->state = std::move(transition->state);
  if (!transition->records.empty()) {
    job->unwritten.insert(job->unwritten.end(), transition->records.begin(),
                          transition->records.end());
    unwritten_.insert(event.job);
    DropOldestSteps(*job, transition->records);
    if (flush_due_seconds_ == 0) flush_due_seconds_ = Now().seconds + kGroupCommitSeconds;
  }
  // Persist first, then act. A lost step record costs nothing: a crash repeats the step as well.
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

void JobLoop::HidePlaces(Transition* transition) const {
  if (!HiddenPlaces::Concern(transition->state.job->owner)) return;
  const auto tells = [](const JobRecord& record) { return !record.message.empty(); };
  if (std::none_of(transition->records.begin(), transition->records.end(), tells)) return;
  HiddenPlaces places = PlacesToHide();
  for (const StageSlot& slot : transition->state.slots) {  // of the fleet it may be gone
    places.AddAddress(slot.stage.address, slot.stage.name);
  }
  for (JobRecord& record : transition->records) {
    std::string shown = places.Hide(record.message);
    if (shown != record.message) record.details = std::exchange(record.message, std::move(shown));
  }
  transition->state.message = places.Hide(std::move(transition->state.message));
  transition->state.unsaved =
      places.Hide(std::move(transition->state.unsaved));  // of messages to come
}

void JobLoop::HoldStages(const Job& job) {
  std::vector<std::string> held;
  if (!IsTerminal(job.state.phase)) {
    for (const StageSlot& slot : job.state.slots) held.push_back(slot.stage.name);
  }
  if (fleet_.Hold(job.state.job->id, held)) placement_due_ = true;
}

void JobLoop::Perform(const Job& job, const std::vector<JobAction>& actions) {
  const Performer performer(*this, job);
  for (const JobAction& action : actions) {
    const SendRun* const run = std::get_if<SendRun>(&action);
    if (draining_ && run != nullptr && run->command.work == WorkKind::kTrain) {
      stopped_.insert(job.state.job->id);  // the next coordinator takes the job up again
      continue;
    }
    std::visit(performer, action);
  }
}

void JobLoop::Drain(bool save, std::function<void()> drained) {
  draining_ = true;
  drained_ = std::move(drained);
  std::vector<std::string> live;
  for (const auto& [id, job] : jobs_) {
    if (!IsTerminal(job.state.phase)) live.push_back(id);
  }
  for (const std::string& id : live) {
    if (save) Deliver({id, Now(), SaveRequested{}});
  }
}

bool JobLoop::Drained() const {
  return std::all_of(jobs_.begin(), jobs_.end(), [this](const auto& entry) {
    switch (entry.second.state.activity) {
      case Activity::kFindCheckpoint:
      case Activity::kWaitStages:
      case Activity::kProfile:
      case Activity::kPlan:
      case Activity::kProbeFolder:
      case Activity::kLoad:
      case Activity::kCheckFolder:
      case Activity::kBackOff:
      case Activity::kEnded:
      case Activity::kHeld:
        return true;  // nothing is lost if these are left as they are
      case Activity::kFindSnapshots:
        if (!entry.second.state.snapshots.saving) return true;
        break;
      case Activity::kTrain:
      case Activity::kFlush:
      case Activity::kEvaluate:
      case Activity::kBeginCheckpoint:
      case Activity::kWriteShards:
      case Activity::kCommit:
      case Activity::kExport:
        break;
    }
    return stopped_.contains(entry.first);
  });
}

void JobLoop::DeliverLost(const std::vector<LostStage>& lost) {
  for (const LostStage& stage : lost) {
    placement_due_ = true;
    if (stage.job.empty()) continue;
    Deliver({stage.job, Now(), StageLost{stage.name, stage.incarnation, stage.reason}});
  }
}

void JobLoop::PinResumed(const JobState& state) {
  if (state.job->spec.resume.job.empty() || state.resume_step < 0) return;
  pins_->Pin(state.job->id, state.job->spec.resume.job, {static_cast<uint64_t>(state.resume_step)});
}

void JobLoop::PinCheckpoints(
    const std::string& id, std::function<void(absl::StatusOr<std::shared_ptr<const void>>)> done) {
  if (const absl::Status elsewhere = MayChange(); !elsewhere.ok()) return done(elsewhere);
  const std::string holder = absl::StrCat("reader ", ++last_ticket_);  // no job is called so
  parts_.effect(EffectsNumber(id),
                [store = parts_.outside.checkpoints, pins = pins_, id, holder, done] {
                  std::vector<uint64_t> steps;
                  for (const CheckpointRef& ref : store->List(id)) steps.push_back(ref.step);
                  pins->Pin(holder, id, std::move(steps));
                  done(std::shared_ptr<const void>(
                      nullptr, [pins, holder](const void*) { pins->Release(holder); }));
                });
}

uint64_t JobLoop::EffectsNumber(const std::string& job) const {
  if (const Job* const live = Find(job); live != nullptr) return live->state.job->sequence;
  const auto ended = ended_.find(job);
  // Nobody works in the folder of a job that is not known: any constant will do.
  return ended == ended_.end() ? 0 : ended->second.sequence;
}

std::vector<WaitingJob> JobLoop::WaitingJobs() const {
  std::vector<const Job*> waiting;
  for (const auto& [id, job] : jobs_) {
    if (WaitsForStages(job.state) || job.state.snapshots.saving) waiting.push_back(&job);
  }
  std::sort(waiting.begin(), waiting.end(), [](const Job* a, const Job* b) {
    return a->state.job->sequence < b->state.job->sequence;
  });
  std::vector<WaitingJob> jobs;
  for (const Job* job : waiting) {
    const JobState& state = job->state;
    jobs.push_back({state.job->id, state.wanted_stages,
                    static_cast<int>(state.job->network.layers.size()),
                    state.phase == JobPhase::kRecovering, state.accepts_fewer, state.suspects,
                    LeastStages(state), state.unfit, HoldersOf(state), state.snapshots.saving});
  }
  return jobs;
}

void JobLoop::TakeFromWaiting(const StageOffer& offer) {
  for (const StageRegistration& stage : offer.stages) {
    const std::string holder = fleet_.HolderOf(stage.name);
    if (holder.empty() || holder == offer.job) continue;
    Deliver({holder, Now(),
             StageLost{stage.name, stage.incarnation,
                       absl::StrCat("job ", offer.job, ", which goes first, takes it")}});
  }
}

void JobLoop::Settle() {
  while (placement_due_ && !draining_) {  // an offer can end a job, which frees stages for the next
    placement_due_ = false;
    const Placement placement = PlaceJobs(fleet_, WaitingJobs());
    for (const StageOffer& offer : placement.offers) {
      Find(offer.job)->told = Shortage{};
      TakeFromWaiting(offer);
      Deliver({offer.job, Now(), StagesOffered{offer.stages, offer.passed_over}});
    }
    for (const Shortage& shortage : placement.shortages) {
      Job* const job = Find(shortage.job);
      const bool told = job->told == shortage && job->told_generation == job->state.generation;
      if (told) continue;
      job->told = shortage;
      job->told_generation = job->state.generation;
      const bool due = placement_due_;
      Deliver({shortage.job, Now(),
               StagesShort{shortage.needed, shortage.ready, shortage.alive, shortage.passed_over,
                           shortage.stages}});
      placement_due_ = due;  // hearing of a shortage changes nobody's claim
    }
  }
}

void JobLoop::LookAtEffects(Job& job, double now_seconds) {
  // A search runs with what touches the folder that it looks into.
  const bool elsewhere = job.state.activity == Activity::kFindCheckpoint && !job.state.searches_own;
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
    const double deadline = job.state.deadline_seconds;
    if (deadline == 0) continue;
    LookAtEffects(job, now.seconds);
    if (heard_seconds >= deadline && stopped_.count(id) == 0) due.push_back(id);
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
    const double deadline = job.state.deadline_seconds;
    if (deadline > 0 && stopped_.count(id) == 0) next = std::min(next, deadline);
  }
  if (flush_due_seconds_ > 0) next = std::min(next, flush_due_seconds_);
  if (PurgeWanted()) next = std::min(next, purge_due_seconds_);
  return next;
}

// Whoever removes the lock file lets a second coordinator start, which takes all jobs over by its
// higher term.
absl::Status JobLoop::OwnsFolder() {
  folder_checked_seconds_ = Now().seconds;
  absl::Status status = parts_.owns_folder();
  if (absl::IsFailedPrecondition(status) && !std::exchange(folder_lost_, true) &&
      parts_.outside.on_folder_lost) {
    parts_.outside.on_folder_lost(status);
  }
  return status;
}

void JobLoop::Flush() {
  flush_due_seconds_ = 0;
  std::vector<JournalUpdate> updates;
  for (const std::string& id : unwritten_) {
    Job& job = *Find(id);
    updates.push_back({id, EncodeJobState(job.state), std::move(job.unwritten)});
    const JobState& state = job.state;
    updates.back().shown = EncodeNews(state.held_out, job.held_out_on_disk, state.facts.classes);
  }
  if (updates.empty()) return;
  absl::Status status = OwnsFolder();
  if (status.ok()) status = parts_.journal->Write(updates);
  if (!status.ok()) {
    for (JournalUpdate& update : updates) Find(update.job)->unwritten = std::move(update.records);
    return JournalFailed(status);
  }
  if (std::exchange(trouble_, std::nullopt).has_value() && parts_.outside.on_journal) {
    parts_.outside.on_journal(absl::OkStatus());
  }
  const std::set<std::string> written = std::exchange(unwritten_, {});
  for (const JournalUpdate& update : updates) {
    Job* const job = Find(update.job);
    if (parts_.outside.on_record) {
      for (const JobRecord& record : update.records) parts_.outside.on_record(update.job, record);
    }
    job->unwritten.clear();
    job->unwritten_steps = job->dropped_steps = job->dropped_up_to = 0;
    job->phase_on_disk = job->state.phase;
    job->step_on_disk = job->state.step;
    job->held_out_on_disk = job->state.held_out;
    const uint64_t before = job->state.records - update.records.size();
    if (before / kThinEvery != job->state.records / kThinEvery) {
      parts_.journal->Thin(update.job, parts_.options.max_records).IgnoreError();
    }
  }
  PumpWatchers(written);
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
  while (!watches_.empty()) EndWatch(watches_.begin()->first, reason);
}

absl::Status JobLoop::MayChange() const {
  if (!parts_.options.only_shows) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "these jobs are copies, only to be looked at; their checkpoints, and what goes on from them, "
      "are in "
      "the folders of their runs: stagecoach ui FOLDER shows one, stagecoach resume JOB "
      "--state-dir FOLDER "
      "goes on with it");
}

absl::StatusOr<JobView> JobLoop::Cancel(const std::string& id) {
  RETURN_IF_ERROR(MayChange());
  const Job* const job = Find(id);
  if (job != nullptr && !IsTerminal(job->state.phase)) Deliver({id, Now(), CancelRequested{}});
  Settle();
  // The next coordinator would take it up again.
  if (job != nullptr && !job->unwritten.empty()) return NotOnDisk(*job);
  return Get(id);
}

absl::StatusOr<LeaseGrant> JobLoop::RegisterStage(const StageRegistration& registration,
                                                  Moment arrived,
                                                  const std::optional<StageDeath>& death) {
  std::vector<LostStage> lost;
  RETURN_IF_ERROR(fleet_.Register(registration, arrived, &lost));
  parts_.outside.stages->Reconnect(registration);  // before anything is sent there
  placement_due_ = true;
  DeliverLost(lost);
  // Before the stage is placed again: it may be the end of the job.
  if (death.has_value() && Find(death->fence.job) != nullptr) {
    Deliver({death->fence.job, Now(), StageDied{registration.name, *death}});
  }
  Settle();
  return LeaseGrant{term_, fleet_.lease_seconds()};
}

absl::StatusOr<LeaseGrant> JobLoop::RenewLease(const StageHeartbeat& heartbeat, Moment arrived) {
  // A lease that ended does not come back. These calls are in the order of their arrival: the
  // heartbeats that came before are known.
  DeliverLost(fleet_.Expire(arrived.seconds));
  ASSIGN_OR_RETURN(const bool usable_again, fleet_.Renew(heartbeat, arrived));
  MeetTerm(heartbeat);
  if (usable_again) placement_due_ = true;
  Settle();
  return LeaseGrant{term_, fleet_.lease_seconds(), fleet_.JobProgressFor(heartbeat.name)};
}

// A stage obeys no term below the highest that it has met. That is above ours if our journal went
// back, as one restored from a backup did: the coordinators in between raised it.
void JobLoop::MeetTerm(const StageHeartbeat& heartbeat) {
  const uint64_t met = std::max(heartbeat.newest_term, heartbeat.fence.term);
  if (met <= term_ || met > kHighestTerm) return;
  if (met > met_term_) {
    met_term_ = met;
    met_term_by_ = heartbeat.name;
  }
  RaiseTerm();
}

void JobLoop::RaiseTerm() {
  if (met_term_ <= term_ || !OwnsFolder().ok()) return;
  const absl::StatusOr<uint64_t> raised = parts_.journal->RaiseTerm(met_term_ + 1);
  if (!raised.ok()) return JournalFailed(raised.status());  // Tick tries again
  const std::string why = absl::StrCat(
      "stage ", met_term_by_, " has worked for a coordinator of term ", met_term_,
      ", this one had ", term_,
      ": its journal went back, as when a backup is restored; its term is ", *raised, " now");
  term_ = *raised;
  if (unwritten_.empty() && std::exchange(trouble_, std::nullopt).has_value() &&
      parts_.outside.on_journal) {
    parts_.outside.on_journal(absl::OkStatus());
  }
  std::vector<std::string> live;
  for (const auto& [id, job] : jobs_) {
    if (!IsTerminal(job.state.phase)) live.push_back(id);
  }
  for (const std::string& id : live) Deliver({id, Now(), TermRaised{term_, why}});
}

}  // namespace stagecoach
