#include "coordinator/loop/job_watches.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/job/view/record_page.h"

namespace stagecoach {

// A code that clients get the reason of: it is nothing to hide, and theirs to act on.
absl::StatusOr<std::vector<JobRecord>> JobWatches::Read(const std::string& job, uint64_t after,
                                                        int limit) const {
  absl::StatusOr<std::vector<JobRecord>> records =
      journal_.Records(job, after, std::min(limit, kMostRecords));
  if (records.ok()) return records;
  return absl::FailedPreconditionError(absl::StrCat(
      "job ", job, ": its history cannot be read on from here: ", records.status().message(),
      "; `describe` shows how the job stands"));
}

void JobWatches::Add(uint64_t watch_id, const std::string& job, uint64_t after,
                     JobManager::Watcher watcher, std::function<void(absl::Status)> ended,
                     JobManager::OnShown on_shown) {
  watches_[watch_id] = {
      job, after, true, std::move(watcher), std::move(ended), std::move(on_shown)};
  of_job_[job].insert(watch_id);
  count_ = static_cast<int64_t>(watches_.size());
  PumpOne(watch_id);
}

void JobWatches::Drop(uint64_t watch_id) {
  const auto found = watches_.find(watch_id);
  if (found == watches_.end()) return;
  const auto of_job = of_job_.find(found->second.job);
  of_job->second.erase(watch_id);
  if (of_job->second.empty()) of_job_.erase(of_job);
  watches_.erase(found);
  count_ = static_cast<int64_t>(watches_.size());
}

// Posted: what a watcher does may come back to the loop.
void JobWatches::Pump(const std::set<std::string>& jobs) {
  for (const std::string& job : jobs) {
    const auto of_job = of_job_.find(job);
    if (of_job == of_job_.end()) continue;
    for (const uint64_t watch_id : of_job->second) {
      if (watches_.at(watch_id).idle) post_([this, watch_id] { PumpOne(watch_id); });
    }
  }
}

// Of copies: what one does may come back to the loop.
void JobWatches::Show(const std::string& job, const JobRecord& shown) const {
  const auto of_job = of_job_.find(job);
  if (of_job == of_job_.end()) return;
  std::vector<JobManager::OnShown> all;
  for (const uint64_t watch_id : of_job->second) {
    const JobManager::OnShown& on_shown = watches_.at(watch_id).on_shown;
    if (on_shown) all.push_back(on_shown);
  }
  for (const JobManager::OnShown& on_shown : all) on_shown(shown);
}

void JobWatches::End(const absl::Status& reason) {
  while (!watches_.empty()) EndOne(watches_.begin()->first, reason);
}

void JobWatches::EndOne(uint64_t watch_id, const absl::Status& status) {
  const auto found = watches_.find(watch_id);
  if (found == watches_.end()) return;
  const std::function<void(absl::Status)> ended = std::move(found->second.ended);
  Drop(watch_id);
  ended(status);
}

void JobWatches::PumpOne(uint64_t watch_id) {
  const auto found = watches_.find(watch_id);
  if (found == watches_.end()) return;
  Watch& watch = found->second;
  watch.idle = true;
  const absl::StatusOr<std::vector<JobRecord>> records =
      Read(watch.job, watch.cursor, kMostRecords);
  if (!records.ok()) return EndOne(watch_id, records.status());
  for (const JobRecord& record : *records) {
    watch.cursor = record.number;
    if (!watch.watcher(record)) return Drop(watch_id);
    if (record.kind == JobRecord::Kind::kFinished) return EndOne(watch_id, absl::OkStatus());
  }
  const bool full = IsFullPage(*records, kMostRecords);
  if (!records->empty() && !full) {  // do they end at a damaged one?
    const absl::Status next = Read(watch.job, watch.cursor, 1).status();
    if (!next.ok()) return EndOne(watch_id, next);
  }
  if (full) {
    watch.idle = false;
    post_([this, watch_id] { PumpOne(watch_id); });
  } else if (const auto outlook = outlook_(watch.job); outlook.has_value()) {
    EndOne(watch_id, *outlook);
  }
}

}  // namespace stagecoach
