// When the journal cannot be written, mostly for want of room: training goes on, for after a crash the
// term is higher anyway, and writing is tried again. But nothing that only memory knows is told as a
// fact, or a restarted coordinator would contradict it; and nobody is left waiting for it either.
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "coordinator/loop/job_loop.h"

namespace stagecoach {
namespace {

constexpr double kRetrySeconds = 1;     // after a failed write
constexpr double kPatienceSeconds = 2;  // a hiccup ends no watch

}  // namespace

void JobLoop::JournalFailed(const absl::Status& why) {
  const double now = Now().seconds;
  flush_due_seconds_ = now + kRetrySeconds;
  if (!trouble_.has_value()) {
    trouble_ = {now, why};
    if (parts_.outside.on_journal) parts_.outside.on_journal(why);
  }
  trouble_->why = why;
  if (!JournalGivenUp()) return;
  for (const auto& [watch_id, watch] : watches_) {
    if (!watch.idle || !unwritten_.contains(watch.job)) continue;
    parts_.post([this, watch_id = watch_id] { Pump(watch_id); });
  }
}

bool JobLoop::JournalGivenUp() const {
  return trouble_.has_value() && Now().seconds - trouble_->since_seconds >= kPatienceSeconds;
}

absl::Status JobLoop::NotOnDisk(const Job& job) const {
  CHECK(trouble_.has_value()) << "job " << job.state.job->id
                              << " has records that wait for no reason";
  const JobState& state = job.state;
  return absl::FailedPreconditionError(absl::StrCat(
      "job ", state.job->id, ": its newest records are not on disk: ", trouble_->why.message(),
      ". On disk the job is ", JobPhaseName(job.phase_on_disk), " at step ", job.step_on_disk,
      "; in memory it is ", JobPhaseName(state.phase), " at step ", state.step,
      ". Writing is tried again every second; if the coordinator ends before it succeeds, the next "
      "one goes by what is on disk and takes the job up from its newest checkpoint"));
}

JobView JobLoop::ShownView(const Job& job) const {
  JobView view = ViewOf(job.state);
  if (job.unwritten.empty()) return view;
  if (IsTerminal(view.phase)) {
    view.phase = job.phase_on_disk;
    view.finished_unix_seconds = 0;
    view.weights_digest.clear();
    view.weights_folder.clear();
  } else if (!JournalGivenUp()) {
    return view;
  }
  view.message = std::string(NotOnDisk(job).message());
  return view;
}

}  // namespace stagecoach
