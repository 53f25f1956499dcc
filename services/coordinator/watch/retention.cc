#include "services/coordinator/watch/retention.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"
#include "base/threads/clock.h"
#include "services/coordinator/watch/await.h"

namespace stagecoach {
namespace {

constexpr double kDaySeconds = 86400;
constexpr double kListSeconds = 10;
// Files of a job may take a while to go. A manager that is shut down answers at once.
constexpr double kRemoveSeconds = 600;

}  // namespace

std::optional<std::string> NextRemoval(const std::vector<EndedJob>& jobs,
                                       const std::set<std::string>& refused,
                                       const RetentionLimits& limits, double now_seconds) {
  int64_t bytes = 0;
  const EndedJob* first = nullptr;
  for (const EndedJob& job : jobs) {
    bytes += job.bytes;
    if (refused.contains(job.id)) continue;
    if (first == nullptr ||
        std::tie(job.ended_seconds, job.id) < std::tie(first->ended_seconds, first->id)) {
      first = &job;
    }
  }
  if (first == nullptr) return std::nullopt;
  const bool old =
      limits.days > 0 && now_seconds - first->ended_seconds > limits.days * kDaySeconds;
  if (old || (limits.bytes > 0 && bytes > limits.bytes)) return first->id;
  return std::nullopt;
}

Retention::Retention(const RetentionLimits& limits, Source source)
    : limits_(limits), source_(std::move(source)) {
  thread_ = Thread("retention", [this] {
    do {
      Look();
    } while (!StopsWithin(kPeriodSeconds));
  });
}

Retention::~Retention() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.Join();
}

bool Retention::StopsWithin(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                           [this] { return stopping_; });
}

void Retention::Look() {
  if (source_.sweep_exports) source_.sweep_exports(source_.now_seconds());
  if (!limits_.given()) return;
  std::vector<EndedJob> jobs = source_.ended();
  if (limits_.bytes > 0) {
    for (EndedJob& job : jobs) {
      if (StopsWithin(0)) return;
      job.bytes = source_.bytes(job.id);
    }
  }
  std::set<std::string> refused;
  while (const auto id = NextRemoval(jobs, refused, limits_, source_.now_seconds())) {
    if (StopsWithin(0)) return;
    const absl::Status removed = source_.remove(*id);
    if (removed.ok()) {
      std::erase_if(jobs, [&id](const EndedJob& job) { return job.id == *id; });
      continue;
    }
    spdlog::info("not removed by --remove-ended-days or --remove-ended-bytes: {}",
                 std::string(removed.message()));
    refused.insert(*id);
  }
}

Retention::Source RetainedJobs(JobManager* manager, const JobFiles& files) {
  Retention::Source source;
  source.ended = [manager] {
    std::vector<EndedJob> jobs;
    const auto views = AwaitOk<std::vector<JobView>>(
        kListSeconds, [manager](auto done) { manager->List(std::move(done)); });
    if (!views.has_value()) return jobs;
    for (const JobView& view : *views) {
      if (!IsTerminal(view.phase) || view.set_aside) continue;
      jobs.push_back({.id = view.id, .ended_seconds = view.finished_unix_seconds});
    }
    return jobs;
  };
  source.bytes = [files](const std::string& job) {
    const JobUsage usage = UsageOf(files, job);
    return usage.checkpoint_bytes + usage.export_bytes + usage.record_bytes;
  };
  source.remove = [manager](const std::string& job) -> absl::Status {
    const auto answer = Await<absl::StatusOr<JobUsage>>(
        kRemoveSeconds, [&](auto done) { manager->RemoveJob(job, std::move(done)); });
    if (!answer.has_value()) return absl::DeadlineExceededError(job + ": its files still go");
    return answer->status();
  };
  source.now_seconds = [] { return SystemClock::Get()->UnixSeconds(); };
  return source;
}

}  // namespace stagecoach
