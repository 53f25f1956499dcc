// The stages of a coordinator: leases, the terms that stages have met, the jobs that get them.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "coordinator/job/job_transition.h"
#include "coordinator/loop/job_loop.h"

namespace stagecoach {
namespace {

// New words, and the same ones for who has missed them.
constexpr double kShowLoadingSeconds = 1, kShowAgainSeconds = 5;

}  // namespace

void JobLoop::DeliverLost(const std::vector<LostStage>& lost) {
  for (const LostStage& stage : lost) {
    placement_due_ = true;
    if (stage.job.empty()) continue;
    Deliver({stage.job, Now(), StageLost{stage.name, stage.incarnation, stage.reason}});
  }
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
  ShowLoading(heartbeat.name);
  Settle();
  return LeaseGrant{term_, fleet_.lease_seconds(), fleet_.JobProgressFor(heartbeat.name)};
}

std::string JobLoop::LoadingText(const Job& job) const {
  const JobState& state = job.state;
  if (state.activity != Activity::kLoad) return "";
  for (size_t k = 0; k < state.slots.size(); ++k) {
    if (state.slots[k].answered) continue;
    const StageSigns signs = fleet_.SignsOf(state.slots[k].stage.name);
    if (!signs.loads || signs.waiting_for.empty()) continue;
    return ShownText(absl::StrCat(StageText(state, static_cast<int>(k)), ": ", signs.waiting_for));
  }
  return "";
}

// It is no record of the history: once the load is over, nobody needs it.
void JobLoop::ShowLoading(const std::string& stage) {
  Job* const job = Find(fleet_.HolderOf(stage));
  if (job == nullptr) return;
  const Moment now = Now();
  std::string text = LoadingText(*job);
  const bool again = text == job->shown_loading;
  if (again && text.empty()) return;
  if (!text.empty()) {
    const double every = again ? kShowAgainSeconds : kShowLoadingSeconds;
    if (now.seconds < job->shown_loading_seconds + every) return;
    job->shown_loading_seconds = now.seconds;
    JobRecord shown;
    shown.unix_seconds = now.unix_seconds;
    shown.step = job->state.step;
    shown.phase = job->state.phase;
    shown.message = text;
    watches_.Show(job->state.job->id, shown);
  }
  job->shown_loading = std::move(text);
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
  if (unwritten_.empty()) JournalWorks();
  for (const std::string& id : LiveJobs()) Deliver({id, Now(), TermRaised{term_, why}});
}

std::vector<WaitingJob> JobLoop::WaitingJobs() const {
  std::vector<const Job*> waiting;
  for (const auto& [id, job] : jobs_) {
    if (WaitsForStages(job.state) || job.state.snapshots.save.on) waiting.push_back(&job);
  }
  std::sort(waiting.begin(), waiting.end(), [](const Job* a, const Job* b) {
    return a->state.job->sequence < b->state.job->sequence;
  });
  std::vector<WaitingJob> jobs;
  for (const Job* job : waiting) {
    const JobState& state = job->state;
    jobs.push_back(
        {state.job->id, state.stages.wanted,
         static_cast<int>(MostStages(state.job->spec.pipeline, LayersOf(state))),
         state.phase == JobPhase::kRecovering, state.stages.accepts_fewer, state.stages.suspects,
         LeastStages(state), state.stages.unfit, HoldersOf(state), state.snapshots.save.on});
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

}  // namespace stagecoach
