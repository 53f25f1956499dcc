// When the journal cannot be written, mostly for want of room: training goes on, for after a crash
// the term is higher anyway, and writing is tried again. But nothing that only memory knows is told
// as a fact, or a restarted coordinator would contradict it; and nobody is left waiting for it
// either.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/utf8.h"
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
  if (JournalGivenUp()) PumpWatchers(unwritten_);
}

// So that a night without room on the disk does not fill the memory: of more steps than the bound
// the oldest records go, many at once. A record with the number of the newest of them says how
// many. A coordinator that ends before there is room repeats these steps anyway. Other kinds stay.
void JobLoop::DropOldestSteps(Job& job, std::span<const JobRecord> added) const {
  const auto is_step = [](const JobRecord& r) { return r.kind == JobRecord::Kind::kStep; };
  job.unwritten_steps += static_cast<size_t>(std::count_if(added.begin(), added.end(), is_step));
  const size_t most = static_cast<size_t>(parts_.options.max_unwritten_steps);
  if (job.unwritten_steps <= most) return;
  const size_t left = most - most / 10;
  const uint64_t told_before = job.dropped_up_to;
  for (const JobRecord& record : job.unwritten) {
    if (job.unwritten_steps == left) break;
    if (!is_step(record)) continue;
    --job.unwritten_steps;
    ++job.dropped_steps;
    job.dropped_up_to = record.number;
  }
  std::erase_if(job.unwritten, [&](const JobRecord& record) {
    return record.number < job.dropped_up_to && (is_step(record) || record.number == told_before);
  });
  const auto newest =
      std::find_if(job.unwritten.begin(), job.unwritten.end(),
                   [&](const JobRecord& record) { return record.number == job.dropped_up_to; });
  JobRecord told;
  told.number = newest->number;
  told.unix_seconds = newest->unix_seconds;
  told.step = newest->step;
  told.phase = newest->phase;
  told.nonfinite_steps = newest->nonfinite_steps;
  told.message = absl::StrCat("the records of ", job.dropped_steps, " steps up to step ", told.step,
                              " are not kept: the journal could not be written meanwhile");
  *newest = std::move(told);
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
  view.message = ShownText(std::string(NotOnDisk(job).message()));
  return view;
}

}  // namespace stagecoach
