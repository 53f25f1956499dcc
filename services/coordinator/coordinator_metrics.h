// CoordinatorMetrics: what /metrics of the coordinator shows, from the manager's views and the
// records of live jobs. Ownership: borrows the manager. Threads:   Write on the HTTP thread;
// records arrive on the job loop; one mutex. Write waits for the
//            job loop at most a second and then leaves the jobs out of this scrape.
#ifndef STAGECOACH_SERVICES_COORDINATOR_COORDINATOR_METRICS_H_
#define STAGECOACH_SERVICES_COORDINATOR_COORDINATOR_METRICS_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "coordinator/job_manager.h"
#include "services/common/metrics.h"

namespace stagecoach {

class CoordinatorMetrics {
 public:
  explicit CoordinatorMetrics(JobManager* manager);
  void Write(MetricWriter& writer);

 private:
  // What the records of one job add up to.
  struct Track {
    uint64_t newest_step = 0;
    uint64_t applied = 0, skipped = 0, replayed = 0;
    double learning_rate = 0, gradient_norm = 0;
    double checkpoint_unix_seconds = 0;
    uint64_t checkpoint_failures = 0;
    bool first_step_seen = false, finished = false;
    double submitted_unix_seconds = 0;
  };
  struct Shared {
    std::mutex mutex;  // guards what follows
    std::map<std::string, Track> tracks;
    uint64_t submitted = 0;
    std::map<std::string, uint64_t> finished;  // by shown state
    Histogram step_seconds{Histogram::DoublingBounds()};
    Histogram queue_seconds{Histogram::DoublingBounds()};
  };
  static void OnRecord(Shared& shared, const std::string& id, const JobRecord& record);
  void Follow(const JobView& view);
  void WriteJob(const JobView& view, MetricWriter& writer);
  void WriteFleet(const std::vector<StageView>& stages, MetricWriter& writer);

  JobManager* const manager_;
  const double started_unix_seconds_;
  const std::shared_ptr<Shared> shared_;  // watch callbacks may outlive this object
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_COORDINATOR_METRICS_H_
