// Retention: removes ended jobs with all their files, as `stagecoach jobs prune` does, once they are
// too old or occupy too much; and old exports.
// Ownership: owns its thread; what its source borrows outlives it.
// Threads:   the source is called on its thread alone.
// Units:     seconds since 1970, days, bytes of files.
// Errors:    a job that cannot be removed now, as it is in use, is logged and tried again.
#ifndef STAGECOACH_SERVICES_COORDINATOR_WATCH_RETENTION_H_
#define STAGECOACH_SERVICES_COORDINATOR_WATCH_RETENTION_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/threads/thread.h"
#include "coordinator/loop/job_files.h"
#include "coordinator/loop/job_manager.h"

namespace stagecoach {

struct RetentionLimits {
  double days = 0;    // since a job's end; 0: any
  int64_t bytes = 0;  // of all ended jobs together; 0: any
  bool given() const { return days > 0 || bytes > 0; }
};

struct EndedJob {
  std::string id;
  double ended_seconds = 0;
  int64_t bytes = 0;
};

// Of the jobs that were not refused, the one that ended first, if it is too old or all jobs together
// are too large.
std::optional<std::string> NextRemoval(const std::vector<EndedJob>& jobs,
                                       const std::set<std::string>& refused,
                                       const RetentionLimits& limits, double now_seconds);

class Retention {
 public:
  static constexpr double kPeriodSeconds = 600;

  struct Source {
    std::function<std::vector<EndedJob>()> ended;  // without bytes
    std::function<int64_t(const std::string& job)> bytes;
    std::function<absl::Status(const std::string& job)> remove;
    std::function<void(double now_seconds)> sweep_exports;  // empty: exports stay
    std::function<double()> now_seconds;
  };
  // Looks at once, and then every kPeriodSeconds.
  Retention(const RetentionLimits& limits, Source source);
  ~Retention();  // waits for a call of the source

 private:
  void Look();
  bool StopsWithin(double seconds);

  const RetentionLimits limits_;
  const Source source_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool stopping_ = false;
  Thread thread_;
};

// The jobs of a manager, which is shut down before the Retention ends; without sweep_exports.
Retention::Source RetainedJobs(JobManager* manager, const JobFiles& files);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_WATCH_RETENTION_H_
