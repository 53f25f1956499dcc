#include "tests/simulation/simulated_user.h"

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

constexpr double kEvery = 0.2;           // a look at what is to be done
constexpr double kPatience = 2.0;        // for an answer
constexpr double kWaitsForAnother = 10;  // job's first checkpoint

}  // namespace

SimulatedUser::SimulatedUser(const Parts& parts, const ScenarioJob& job)
    : parts_(parts), job_(job), next_watch_(parts.first_watch) {
  parts_.time->After(job.submit_at, [this] { Look(); });
}

bool SimulatedUser::Hears(uint64_t process) const {
  const CoordinatorProcess* const coordinator = parts_.coordinator();
  return coordinator != nullptr && coordinator->process() == process;
}

void SimulatedUser::Look() {
  parts_.time->After(kEvery, [this] { Look(); });
  if (ended_ || refused_) return;
  CoordinatorProcess* const coordinator = parts_.coordinator();
  if (coordinator == nullptr) {
    asked_ = watches_ = 0;
    return;
  }
  const double now = parts_.time->seconds();
  if (asked_ == coordinator->process() && now < asked_at_ + kPatience) return;
  if (!accepted_) return Submit(*coordinator);
  if (now >= job_.cancel_at && !cancel_answered_) return Cancel(*coordinator);
  if (watches_ != coordinator->process()) Watch(*coordinator);
  ResumeIfHeld(*coordinator);
}

// Answers of a coordinator that ends meanwhile never come: what is asked of it is an event of its
// process.
void SimulatedUser::Submit(CoordinatorProcess& coordinator) {
  asked_ = coordinator.process();
  asked_at_ = parts_.time->seconds();
  coordinator.Ask([this, process = asked_](JobLoop& loop) {
    loop.Submit(job_.id, job_.spec, [this, process](const absl::StatusOr<JobView>& view) {
      if (!Hears(process)) return;
      asked_ = 0;
      accepted_ = accepted_ || view.ok();
      const bool nothing_there = absl::IsFailedPrecondition(view.status()) ||
                                 parts_.time->seconds() > job_.submit_at + kWaitsForAnother;
      refused_ = !accepted_ && nothing_there && !job_.spec.resume.job.empty();
      if (accepted_ || !absl::IsInvalidArgument(view.status())) return;
      complaint_ = absl::StrCat("not accepted: ", view.status().ToString());
    });
  });
}

void SimulatedUser::Cancel(CoordinatorProcess& coordinator) {
  asked_ = coordinator.process();
  asked_at_ = parts_.time->seconds();
  coordinator.Ask([this, process = asked_](JobLoop& loop) {
    if (!Hears(process)) return;
    const absl::StatusOr<JobView> view = loop.Cancel(job_.id);
    asked_ = 0;
    cancel_answered_ = view.ok();
    cancelled_ = view.ok() && view->phase == JobPhase::kCancelled;
  });
}

void SimulatedUser::ResumeIfHeld(CoordinatorProcess& coordinator) {
  coordinator.Ask([this, process = coordinator.process()](JobLoop& loop) {
    if (!Hears(process)) return;
    const absl::StatusOr<JobView> view = loop.Get(job_.id);
    if (view.ok() && view->phase == JobPhase::kHeld) {
      const absl::Status resumed = loop.Resume(job_.id, job_.held_stages).status();
      // Fewer than it may have, say: then as it was.
      if (!resumed.ok()) loop.Resume(job_.id, 0).IgnoreError();
    }
  });
}

void SimulatedUser::Watch(CoordinatorProcess& coordinator) {
  watches_ = coordinator.process();
  coordinator.Ask([this, process = coordinator.process()](JobLoop& loop) {
    loop.Watch(
        next_watch_++, job_.id, watched_.empty() ? 0 : watched_.back().number,
        [this, process](const JobRecord& record) {
          if (!Hears(process)) return false;
          watched_.push_back(record);
          ended_ = ended_ || record.kind == JobRecord::Kind::kFinished;
          return true;
        },
        [this, process](const absl::Status& status) {
          if (!Hears(process)) return;
          if (absl::IsNotFound(status)) {
            complaint_ = absl::StrCat("an accepted job was lost: ", status.ToString());
          }
          if (watches_ == process) watches_ = 0;
        });
  });
}

}  // namespace stagecoach
