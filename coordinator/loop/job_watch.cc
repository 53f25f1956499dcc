// The history of jobs for those who look: read from the journal, so that nobody is told more than
// what is on disk.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/loop/job_loop.h"

namespace stagecoach {
namespace {

// A code that clients get the reason of: it is nothing to hide, and theirs to act on.
absl::Status Unreadable(const std::string& id, const absl::Status& why) {
  return absl::FailedPreconditionError(absl::StrCat(
      "job ", id, ": its history cannot be read on from here: ", std::string(why.message()),
      "; `describe` shows how the job stands"));
}

}  // namespace

absl::Status JobLoop::UnknownJob(const std::string& id) {
  return absl::NotFoundError(absl::StrCat("job ", id, " is not known; `list` shows all jobs"));
}

absl::StatusOr<std::vector<JobRecord>> JobLoop::Records(const std::string& id, uint64_t after,
                                                        int limit) const {
  if (!Known(id)) return UnknownJob(id);
  absl::StatusOr<std::vector<JobRecord>> records =
      parts_.journal->Records(id, after, std::min(limit, kRecordsPerPump));
  if (!records.ok()) return Unreadable(id, records.status());
  return records;
}

absl::StatusOr<ShownTexts> JobLoop::Shown(const std::string& id) const {
  if (!Known(id)) return UnknownJob(id);
  return parts_.journal->Shown(id);
}

void JobLoop::Watch(uint64_t watch_id, const std::string& id, uint64_t after,
                    JobManager::Watcher watcher, std::function<void(absl::Status)> ended) {
  if (!Known(id)) return ended(UnknownJob(id));
  watches_[watch_id] = {id, after, true, std::move(watcher), std::move(ended)};
  watches_of_[id].insert(watch_id);
  watch_count_ = static_cast<int64_t>(watches_.size());
  Pump(watch_id);
}

void JobLoop::Unwatch(uint64_t watch_id) { DropWatch(watch_id); }

void JobLoop::DropWatch(uint64_t watch_id) {
  const auto found = watches_.find(watch_id);
  if (found == watches_.end()) return;
  const auto of_job = watches_of_.find(found->second.job);
  of_job->second.erase(watch_id);
  if (of_job->second.empty()) watches_of_.erase(of_job);
  watches_.erase(found);
  watch_count_ = static_cast<int64_t>(watches_.size());
}

// Posted: what a watcher does may come back to the loop.
void JobLoop::PumpWatchers(const std::set<std::string>& jobs) {
  for (const std::string& job : jobs) {
    const auto of_job = watches_of_.find(job);
    if (of_job == watches_of_.end()) continue;
    for (const uint64_t watch_id : of_job->second) {
      if (!watches_.at(watch_id).idle) continue;
      parts_.post([this, watch_id] { Pump(watch_id); });
    }
  }
}

void JobLoop::EndWatch(uint64_t watch_id, const absl::Status& status) {
  const auto found = watches_.find(watch_id);
  if (found == watches_.end()) return;
  const std::function<void(absl::Status)> ended = std::move(found->second.ended);
  DropWatch(watch_id);
  ended(status);
}

void JobLoop::Pump(uint64_t watch_id) {
  const auto found = watches_.find(watch_id);
  if (found == watches_.end()) return;
  OneWatch& watch = found->second;
  watch.idle = true;
  const absl::StatusOr<std::vector<JobRecord>> records =
      parts_.journal->Records(watch.job, watch.cursor, kRecordsPerPump);
  if (!records.ok()) return EndWatch(watch_id, Unreadable(watch.job, records.status()));
  for (const JobRecord& record : *records) {
    watch.cursor = record.number;
    if (!watch.watcher(record)) return DropWatch(watch_id);
    if (record.kind == JobRecord::Kind::kFinished) return EndWatch(watch_id, absl::OkStatus());
  }
  if (!records->empty() && records->size() < kRecordsPerPump) {  // do they end at a damaged one?
    const absl::Status next = parts_.journal->Records(watch.job, watch.cursor, 1).status();
    if (!next.ok()) return EndWatch(watch_id, Unreadable(watch.job, next));
  }
  const Job* const job = Find(watch.job);
  if (records->size() == kRecordsPerPump) {
    watch.idle = false;
    parts_.post([this, watch_id] { Pump(watch_id); });
  } else if (job == nullptr || (IsTerminal(job->state.phase) && job->unwritten.empty())) {
    EndWatch(watch_id, absl::OkStatus());
  } else if (JournalGivenUp() && !job->unwritten.empty()) {
    EndWatch(watch_id, NotOnDisk(*job));
  }
}

}  // namespace stagecoach
