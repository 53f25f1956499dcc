// Jobs as a list, and what becomes of those that have ended: a view in memory, their spec and
// history in the journal, and neither once they are too many or too old.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files/hash.h"
#include "coordinator/loop/job_loop.h"

namespace stagecoach {
namespace {

// One transaction every so often: the loop has other work in between.
constexpr int64_t kPurgeRows = 1000;
constexpr size_t kPurgeJobs = 200;
constexpr double kPurgeSeconds = 0.1;
constexpr double kPurgeRetrySeconds = 60;  // after one that failed
constexpr double kSecondsOfADay = 86400;

}  // namespace

JobLoop::JobText JobLoop::TextOf(const std::string& spec_text) {
  return {Sha256Hex(spec_text), static_cast<int64_t>(spec_text.size())};
}

void JobLoop::AddEnded(const JobState& state, const JobText& text) {
  const std::string& id = state.job->id;
  JobView view = ViewOf(state);
  view.spec = nullptr;  // either may be large
  view.network = nullptr;
  ended_of_[view.owner].emplace(state.finished_unix_seconds, id);
  ended_[id] = {state.job->sequence, text.sha256, std::make_shared<const JobView>(std::move(view))};
  by_end_.emplace(state.finished_unix_seconds, id);
}

void JobLoop::RetireEnded() {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    const Job& job = it->second;
    const bool done = IsTerminal(job.state.phase) && job.unwritten.empty();
    if (done) pins_->Release(it->first);
    if (done) AddEnded(job.state, job.text);
    if (done) live_spec_bytes_ -= job.text.bytes;
    it = done ? jobs_.erase(it) : std::next(it);
  }
}

bool JobLoop::PurgeWanted() const {
  if (by_end_.empty() || draining_ || trouble_.has_value()) return false;
  if (static_cast<int64_t>(by_end_.size()) > parts_.options.keep_ended_jobs) return true;
  const double days = parts_.options.keep_ended_days;
  return days > 0 && by_end_.begin()->first + days * kSecondsOfADay <= Now().unix_seconds;
}

// Those that are too old, and of too many one after the other the oldest of whoever has the most:
// one user's many do not push out the others'.
std::vector<JobLoop::EndOfJob> JobLoop::JobsToPurge() const {
  const double days = parts_.options.keep_ended_days;
  const double oldest = days > 0 ? Now().unix_seconds - days * kSecondsOfADay : -1;
  std::vector<EndOfJob> chosen;
  std::map<std::string, size_t> chosen_of;  // by owner
  for (const EndOfJob& job : by_end_) {
    if (job.first > oldest || chosen.size() == kPurgeJobs) break;
    chosen.push_back(job);
    ++chosen_of[ended_.at(job.second).view->owner];
  }
  struct Kept {
    std::set<EndOfJob>::const_iterator oldest;
    size_t count = 0;
  };
  std::vector<Kept> kept;
  for (const auto& [owner, jobs] : ended_of_) {
    const size_t gone = chosen_of[owner];
    kept.push_back({std::next(jobs.begin(), static_cast<int64_t>(gone)), jobs.size() - gone});
  }
  const auto limit = static_cast<size_t>(std::max<int64_t>(0, parts_.options.keep_ended_jobs));
  while (chosen.size() < kPurgeJobs && by_end_.size() > limit + chosen.size()) {
    const auto most = std::max_element(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) {
      if (a.count != b.count) return a.count < b.count;
      return a.count > 0 && *b.oldest < *a.oldest;
    });
    chosen.push_back(*most->oldest++);
    --most->count;
  }
  return chosen;
}

// The journal only: checkpoints, exports and records of the job stay on disk. Entries that were set
// aside stay too.
void JobLoop::PurgeEnded() {
  const double now = Now().seconds;
  if (now < purge_due_seconds_ || !PurgeWanted()) return;
  purge_due_seconds_ = now + kPurgeSeconds;
  const std::vector<EndOfJob> chosen = JobsToPurge();
  std::vector<std::string> ids;
  for (const EndOfJob& job : chosen) ids.push_back(job.second);
  const absl::Status owner = OwnsFolder();
  const absl::StatusOr<int> gone =
      owner.ok() ? parts_.journal->Purge(ids, kPurgeRows) : absl::StatusOr<int>(owner);
  if (!gone.ok()) {
    purge_due_seconds_ = now + kPurgeRetrySeconds;  // writing a record says why
    return;
  }
  for (int i = 0; i < *gone; ++i) {
    const auto ended = ended_.find(ids[i]);
    if (parts_.outside.on_purged) parts_.outside.on_purged(*ended->second.view);
    const auto of_owner = ended_of_.find(ended->second.view->owner);
    of_owner->second.erase(chosen[i]);
    if (of_owner->second.empty()) ended_of_.erase(of_owner);
    ended_.erase(ended);
    by_end_.erase(chosen[i]);
  }
}

// A late answer to a job that is in memory as a view only.
void JobLoop::DropLate(const JobEvent& event) {
  pins_->Release(event.job);
  const auto ended = ended_.find(event.job);
  std::string folder;  // that was made for nobody
  if (const auto* const begun = std::get_if<CheckpointBegun>(&event.kind);
      begun != nullptr && begun->folder.ok()) {
    folder = *begun->folder;
  }
  if (const auto* const probed = std::get_if<FolderProbed>(&event.kind);
      probed != nullptr && probed->probe.ok()) {
    folder = probed->probe->folder;
  }
  if (ended == ended_.end() || folder.empty()) return;
  parts_.effect(ended->second.sequence,
                [store = parts_.outside.checkpoints, folder] { store->Abandon(folder); });
}

absl::StatusOr<JobView> JobLoop::Get(const std::string& id) const {
  if (const Job* const live = Find(id); live != nullptr) return ShownView(*live);
  const auto ended = ended_.find(id);
  if (ended == ended_.end()) return UnknownJob(id);
  return *ended->second.view;
}

absl::Status JobLoop::CheckCaller(const JobCaller& caller, const std::string& id) const {
  if (const Job* const live = Find(id); live != nullptr) {
    return CheckOwner(caller, id, live->state.job->owner);
  }
  const auto ended = ended_.find(id);
  if (ended == ended_.end()) return UnknownJob(id);
  return CheckOwner(caller, id, ended->second.view->owner);
}

absl::StatusOr<std::string> JobLoop::SpecText(const std::string& id) const {
  if (!Known(id)) return UnknownJob(id);
  return parts_.journal->Spec(id);
}

JobLoop::Page JobLoop::List(uint64_t before, size_t most, const JobCaller& caller) const {
  struct Entry {
    uint64_t sequence = 0;
    const Job* job = nullptr;  // null: it has ended
    const EndedJob* ended = nullptr;
  };
  std::vector<Entry> entries;
  entries.reserve(ended_.size() + jobs_.size());
  for (const auto& [id, job] : ended_) {
    if (job.sequence < before && caller.May(job.view->owner))
      entries.push_back({job.sequence, nullptr, &job});
  }
  for (const auto& [id, job] : jobs_) {
    const uint64_t sequence = job.state.job->sequence;
    if (sequence < before && caller.May(job.state.job->owner))
      entries.push_back({sequence, &job, nullptr});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.sequence > b.sequence; });
  Page page;
  if (entries.size() > most) {
    entries.resize(most);
    page.next = entries.back().sequence;
  }
  page.jobs.reserve(entries.size());
  for (const Entry& entry : entries) {
    page.jobs.push_back(entry.job == nullptr
                            ? entry.ended->view
                            : std::make_shared<const JobView>(ShownView(*entry.job)));
  }
  return page;
}

}  // namespace stagecoach
