// Jobs as a list, live and ended, and how one passes from the first kind to the second.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/loop/job_loop.h"

namespace stagecoach {
namespace {

// One transaction every so often: the loop has other work in between.
constexpr int64_t kPurgeRows = 1000;
constexpr double kPurgeSeconds = 0.1;
constexpr double kPurgeRetrySeconds = 60;  // after one that failed

}  // namespace

absl::Status JobLoop::UnknownJob(const std::string& id) {
  return absl::NotFoundError(absl::StrCat("job ", id, " is not known; `list` shows all jobs"));
}

void JobLoop::RetireEnded() {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    const Job& job = it->second;
    const bool done = IsTerminal(job.state.phase) && job.unwritten.empty();
    if (done) pins_->Release(it->first);
    if (done) ended_.Add(it->first, job.text.sha256, ViewOf(job.state));
    if (done) live_spec_bytes_ -= job.text.bytes;
    it = done ? jobs_.erase(it) : std::next(it);
  }
}

bool JobLoop::PurgeWanted() const {
  if (draining_ || trouble_.has_value()) return false;
  return ended_.TooMany(Now().unix_seconds) || !RemovedEntries().empty();
}

// The journal only. Checkpoints, exports and records of a forgotten job stay on disk; those of a
// removed job are gone already (job_removal.cc). Entries that were set aside stay too.
void JobLoop::PurgeEnded() {
  const Moment now = Now();
  if (now.seconds < purge_due_seconds_ || !PurgeWanted()) return;
  purge_due_seconds_ = now.seconds + kPurgeSeconds;
  const std::vector<std::string> removed = RemovedEntries();
  std::vector<std::string> ids = removed;
  for (std::string& id : ended_.ToPurge(now.unix_seconds)) ids.push_back(std::move(id));
  const absl::Status owner = OwnsFolder();
  const absl::StatusOr<int> gone =
      owner.ok() ? parts_.journal->Purge(ids, kPurgeRows) : absl::StatusOr<int>(owner);
  if (!gone.ok()) {
    purge_due_seconds_ = now.seconds + kPurgeRetrySeconds;  // writing a record says why
    for (const std::string& id : removed) AnswerRemoval(id, gone.status());
    return;
  }
  for (int i = 0; i < *gone; ++i) {
    if (static_cast<size_t>(i) < removed.size()) {
      EntryRemoved(ids[i]);
      continue;
    }
    if (parts_.outside.on_purged) parts_.outside.on_purged(*ended_.Find(ids[i])->view);
    ended_.Forget(ids[i]);
  }
}

// A late answer to a job that is in memory as a view only.
void JobLoop::DropLate(const JobEvent& event) {
  pins_->Release(event.job);
  const EndedJobs::Job* const ended = ended_.Find(event.job);
  std::string folder;  // that was made for nobody
  if (const auto* const begun = std::get_if<CheckpointBegun>(&event.kind);
      begun != nullptr && begun->folder.ok()) {
    folder = *begun->folder;
  }
  if (const auto* const probed = std::get_if<FolderProbed>(&event.kind);
      probed != nullptr && probed->probe.ok()) {
    folder = probed->probe->folder;
  }
  if (ended == nullptr || folder.empty()) return;
  parts_.effect(ended->sequence,
                [store = parts_.outside.checkpoints, folder] { store->Abandon(folder); });
}

absl::StatusOr<JobView> JobLoop::Get(const std::string& id) const {
  if (const Job* const live = Find(id); live != nullptr) return ShownView(*live);
  const EndedJobs::Job* const ended = ended_.Find(id);
  if (ended == nullptr) return UnknownJob(id);
  return *ended->view;
}

absl::Status JobLoop::CheckCaller(const JobCaller& caller, const std::string& id) const {
  if (const Job* const live = Find(id); live != nullptr) {
    return CheckOwner(caller, id, live->state.job->owner);
  }
  const EndedJobs::Job* const ended = ended_.Find(id);
  if (ended != nullptr) return CheckOwner(caller, id, ended->view->owner);
  const auto removal = removals_.find(id);
  if (removal == removals_.end()) return UnknownJob(id);
  return CheckOwner(caller, id, removal->second.view->owner);
}

absl::StatusOr<std::string> JobLoop::SpecText(const std::string& id) const {
  if (!Known(id)) return UnknownJob(id);
  return parts_.journal->Spec(id);
}

JobLoop::Page JobLoop::List(uint64_t before, size_t most, const JobCaller& caller) const {
  struct Entry {
    uint64_t sequence = 0;
    const Job* job = nullptr;  // null: it has ended
    const EndedJobs::Job* ended = nullptr;
  };
  std::vector<Entry> entries;
  entries.reserve(ended_.all().size() + jobs_.size());
  for (const auto& [id, job] : ended_.all()) {
    if (job.sequence < before && caller.May(job.view->owner)) {
      entries.push_back({job.sequence, nullptr, &job});
    }
  }
  for (const auto& [id, job] : jobs_) {
    const uint64_t sequence = job.state.job->sequence;
    if (sequence < before && caller.May(job.state.job->owner)) {
      entries.push_back({sequence, &job, nullptr});
    }
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

absl::StatusOr<std::vector<JobRecord>> JobLoop::Records(const std::string& id, uint64_t after,
                                                        int limit) const {
  if (!Known(id)) return UnknownJob(id);
  return watches_.Read(id, after, limit);
}

absl::StatusOr<ShownTexts> JobLoop::Shown(const std::string& id) const {
  if (!Known(id)) return UnknownJob(id);
  return parts_.journal->Shown(id);
}

void JobLoop::Watch(uint64_t watch_id, const std::string& id, uint64_t after,
                    JobManager::Watcher watcher, std::function<void(absl::Status)> ended,
                    JobManager::OnShown on_shown) {
  if (!Known(id)) return ended(UnknownJob(id));
  watches_.Add(watch_id, id, after, std::move(watcher), std::move(ended), std::move(on_shown));
}

}  // namespace stagecoach
