// LiveState: the present state of jobs and stages. It asks for it at most about once a second,
// however many streams show it.
// Ownership: borrows manager and clock. Snapshots are shared and never change.
// Threads:   thread-safe; Latest may wait for the job loop, at most a second.
#ifndef STAGECOACH_SERVICES_COORDINATOR_HTTP_LIVE_STATE_H_
#define STAGECOACH_SERVICES_COORDINATOR_HTTP_LIVE_STATE_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/threads/clock.h"
#include "coordinator/loop/job_manager.h"

namespace stagecoach {

class LiveState {
 public:
  static constexpr double kMaxAgeSeconds = 0.7;

  struct Snapshot {
    double taken_seconds = 0;
    std::vector<JobView> jobs;  // newest first, without their specs
    std::string states;         // changes when a job comes, goes or changes its state
    std::string jobs_json;    // ListJobsResponse, the first page, as of the last change of `states`
    std::string stages_json;  // ListStagesResponse
    const JobView* Find(const std::string& id) const;
  };

  LiveState(JobManager* manager, const Clock* clock) : manager_(manager), clock_(clock) {}
  // Null only if the job loop has never answered.
  std::shared_ptr<const Snapshot> Latest();

 private:
  std::shared_ptr<const Snapshot> Take() const;

  JobManager* const manager_;
  const Clock* const clock_;
  std::mutex mutex_;  // guards latest_; threads that wait for it want the snapshot being taken
  std::shared_ptr<const Snapshot> latest_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_HTTP_LIVE_STATE_H_
