#include "coordinator/loop/ended_jobs.h"

#include <algorithm>

namespace stagecoach {
namespace {

constexpr size_t kPurgeJobs = 200;
constexpr double kSecondsOfADay = 86400;

}  // namespace

void EndedJobs::Add(const std::string& id, const std::string& spec_sha256, JobView view) {
  view.spec = nullptr;
  view.network = nullptr;
  if (!view.set_aside) {
    of_owner_[view.owner].emplace(view.finished_unix_seconds, id);
    by_end_.emplace(view.finished_unix_seconds, id);
  }
  const uint64_t sequence = view.sequence;
  jobs_[id] = {sequence, spec_sha256, std::make_shared<const JobView>(std::move(view))};
}

const EndedJobs::Job* EndedJobs::Find(const std::string& id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

bool EndedJobs::TooMany(double now) const {
  if (by_end_.empty()) return false;
  return static_cast<int64_t>(by_end_.size()) > keep_jobs_ ||
         (keep_days_ > 0 && by_end_.begin()->first + keep_days_ * kSecondsOfADay <= now);
}

// Those that are too old, and of too many one after the other the oldest of whoever has the most:
// one user's many do not push out the others'.
std::vector<std::string> EndedJobs::ToPurge(double now) const {
  const double oldest = keep_days_ > 0 ? now - keep_days_ * kSecondsOfADay : -1;
  std::vector<std::string> chosen;
  std::map<std::string, size_t> chosen_of;  // by owner
  for (const auto& [end, id] : by_end_) {
    if (end > oldest || chosen.size() == kPurgeJobs) break;
    chosen.push_back(id);
    ++chosen_of[jobs_.at(id).view->owner];
  }
  struct Kept {
    std::set<End>::const_iterator oldest;
    size_t count = 0;
  };
  std::vector<Kept> kept;
  for (const auto& [owner, jobs] : of_owner_) {
    const size_t gone = chosen_of[owner];
    kept.push_back({std::next(jobs.begin(), static_cast<int64_t>(gone)), jobs.size() - gone});
  }
  const auto limit = static_cast<size_t>(std::max<int64_t>(0, keep_jobs_));
  while (chosen.size() < kPurgeJobs && by_end_.size() > limit + chosen.size()) {
    const auto most = std::max_element(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) {
      if (a.count != b.count) return a.count < b.count;
      return a.count > 0 && *b.oldest < *a.oldest;
    });
    chosen.push_back((most->oldest++)->second);
    --most->count;
  }
  return chosen;
}

void EndedJobs::Forget(const std::string& id) {
  const auto job = jobs_.find(id);
  const End end{job->second.view->finished_unix_seconds, id};
  const auto of_owner = of_owner_.find(job->second.view->owner);
  of_owner->second.erase(end);
  if (of_owner->second.empty()) of_owner_.erase(of_owner);
  by_end_.erase(end);
  jobs_.erase(job);
}

}  // namespace stagecoach
