// How jobs get into the journal: what waits is written together. If the journal cannot be written,
// mostly for want of room, training goes on, as after a crash the term is higher anyway. Texts are
// all that their job is for, so it waits before they fill the memory (JobLoop::Perform). Writing to
// the journal is tried again. But nothing that only memory knows is told as a fact, or a restarted
// coordinator would contradict it. Nobody is left waiting for it either.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/utf8.h"
#include "coordinator/job/job_json.h"
#include "coordinator/job/view/shown_json.h"
#include "coordinator/loop/job_loop.h"

namespace stagecoach {
namespace {

constexpr uint64_t kThinEvery = 1000;   // records
constexpr double kRetrySeconds = 1;     // after a failed write
constexpr double kPatienceSeconds = 2;  // a hiccup ends no watch

}  // namespace

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
    updates.back().shown =
        EncodeNews(state.evaluation.held_out, job.held_out_on_disk, state.found.facts.classes);
  }
  if (updates.empty()) return;
  absl::Status status = OwnsFolder();
  if (status.ok()) status = parts_.journal->Write(updates);
  if (!status.ok()) {
    for (JournalUpdate& update : updates) Find(update.job)->unwritten = std::move(update.records);
    return JournalFailed(status);
  }
  JournalWorks();
  const std::set<std::string> written = std::exchange(unwritten_, {});
  for (const JournalUpdate& update : updates) {
    Job* const job = Find(update.job);
    if (parts_.outside.on_record) {
      for (const JobRecord& record : update.records) parts_.outside.on_record(update.job, record);
    }
    job->unwritten.clear();
    job->unwritten_steps = job->dropped_steps = job->dropped_up_to = 0;
    job->unwritten_text_bytes = 0;
    job->phase_on_disk = job->state.phase;
    job->step_on_disk = job->state.step;
    job->held_out_on_disk = job->state.evaluation.held_out;
    const uint64_t before = job->state.records - update.records.size();
    if (before / kThinEvery != job->state.records / kThinEvery) {
      parts_.journal->Thin(update.job, parts_.options.max_records).IgnoreError();
    }
  }
  watches_.Pump(written);
  for (const std::string& id : written) SendHeldBack(*Find(id));
}

void JobLoop::JournalWorks() {
  const bool again = std::exchange(trouble_, std::nullopt).has_value();
  if (again && parts_.outside.on_journal) parts_.outside.on_journal(absl::OkStatus());
}

void JobLoop::JournalFailed(const absl::Status& why) {
  const double now = Now().seconds;
  flush_due_seconds_ = now + kRetrySeconds;
  if (!trouble_.has_value()) {
    trouble_ = {now, why};
    if (parts_.outside.on_journal) parts_.outside.on_journal(why);
  }
  trouble_->why = why;
  if (JournalGivenUp()) watches_.Pump(unwritten_);
}

// So that a night without room on the disk does not fill the memory: of more steps than the bound
// the oldest records go, many at once. A record with the number of the newest of them says how
// many. A coordinator that ends before there is room repeats these steps anyway. Other kinds stay;
// of those only texts are many, and their job waits.
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
  const std::string from = state.job->spec.write.has_value()
                               ? absl::StrCat("writes on from mini-batch ", job.step_on_disk)
                               : std::string("takes the job up from its newest checkpoint");
  return absl::FailedPreconditionError(absl::StrCat(
      "job ", state.job->id, ": its newest records are not on disk: ", trouble_->why.message(),
      ". On disk the job is ", JobPhaseName(job.phase_on_disk), " at step ", job.step_on_disk,
      "; in memory it is ", JobPhaseName(state.phase), " at step ", state.step,
      ". Writing is tried again every second; if the coordinator ends before it succeeds, the next "
      "one goes by what is on disk and ",
      from));
}

// For a watcher that has all that is on disk.
std::optional<absl::Status> JobLoop::OutlookOf(const std::string& id) const {
  const Job* const job = Find(id);
  if (job == nullptr || (IsTerminal(job->state.phase) && job->unwritten.empty())) {
    return absl::OkStatus();
  }
  if (JournalGivenUp() && !job->unwritten.empty()) return NotOnDisk(*job);
  return std::nullopt;
}

JobView JobLoop::ShownView(const Job& job) const {
  JobView view = ViewOf(job.state);
  if (const std::string text = LoadingText(job); !text.empty()) {
    absl::StrAppend(&view.message, view.message.empty() ? "" : "; ", text);
  }
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
