// CoordinatorMetrics: the coordinator's part of /metrics, from the manager's views and the records
// of live jobs. It follows jobs from their acceptance, so that their first scrape has all earlier
// counts.
// Ownership: borrows the manager.
// Threads:   Write on the HTTP thread; records arrive on the job loop; one mutex. Write waits for
//            the job loop at most a second and then leaves the jobs out of this scrape. Follow
//            from any thread; it does not wait.
#ifndef STAGECOACH_SERVICES_COORDINATOR_WATCH_COORDINATOR_METRICS_H_
#define STAGECOACH_SERVICES_COORDINATOR_WATCH_COORDINATOR_METRICS_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/loop/job_manager.h"
#include "services/common/observe/metrics.h"

namespace stagecoach {

// Longest wait of the jobs that have not begun; 0 if there are none.
double OldestPendingSeconds(const std::vector<JobView>& jobs, double now_unix_seconds);

class CoordinatorMetrics {
 public:
  explicit CoordinatorMetrics(JobManager* manager);
  // Follows a job that was accepted, or existed at the start of this process. Harmless to repeat.
  void Follow(const JobView& view);
  // Drops a job that is no longer known. Totals over all jobs keep its counts. Any thread; does not
  // wait.
  void Forget(const JobView& view);
  void Write(MetricWriter& writer);
  // The part of Write about stages' faults: each job counts once, also one that was forgotten after
  // `jobs` were listed.
  void WriteRecoveries(const std::vector<JobView>& jobs, const std::vector<StageView>& stages,
                       MetricWriter& writer);

 private:
  struct TokenSize {
    double flops_per_token = 0;  // 0 for a job that has ended
    bool of_text = false;        // else a token is a target of a picture
  };
  static TokenSize SizeOfTokens(const Network& network);
  // Sums over the records of one job.
  struct Track {
    bool followed = false;
    uint64_t last_number = 0;  // of the records
    uint64_t newest_step = 0;
    uint64_t applied = 0, skipped = 0, replayed = 0;
    double tokens = 0;  // of applied steps, with the lengths that each had
    double learning_rate = 0, gradient_norm = 0;
    double checkpoint_unix_seconds = 0;
    uint64_t save_failures = 0, load_failures = 0;
    double loading_since_unix_seconds = 0;  // 0: not loading
    bool first_step_seen = false, finished = false;
    double submitted_unix_seconds = 0;
    std::optional<TokenSize> size;  // of the job's network; counted once
  };
  struct Shared {
    bool HasForgotten(const JobView& view) const {
      return forgotten.contains({view.sequence, view.id});
    }

    std::mutex mutex;  // guards what follows
    std::map<std::string, Track> tracks;
    uint64_t submitted = 0;
    std::map<std::string, uint64_t> finished;  // by shown state
    // Faults of forgotten jobs, by stage and reason: a counter does not go back.
    std::map<std::string, std::map<std::string, uint64_t>> former_faults;
    // Those jobs, the newest, by sequence and id: a list of a moment ago may still have them.
    std::set<std::pair<uint64_t, std::string>> forgotten;
    Histogram step_seconds{Histogram::DoublingBounds()};
    Histogram queue_seconds{Histogram::DoublingBounds()};
    Histogram save_seconds{Histogram::DoublingBounds()};
    Histogram load_seconds{Histogram::DoublingBounds()};
    double started_unix_seconds = 0;  // older records are counted, but not observed
  };
  static void OnRecord(Shared& shared, const std::string& id, const JobRecord& record);
  static void OnStep(Shared& shared, Track& track, const JobRecord& record);
  static void OnPhase(Shared& shared, Track& track, const JobRecord& record);
  void WriteJob(const JobView& view, MetricWriter& writer);
  void WriteTrack(const JobView& view, const Track& track, MetricWriter& writer);
  void WriteFleet(const std::vector<StageView>& stages, MetricWriter& writer);

  JobManager* const manager_;
  const std::shared_ptr<Shared> shared_;  // watch callbacks may outlive this object
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_WATCH_COORDINATOR_METRICS_H_
