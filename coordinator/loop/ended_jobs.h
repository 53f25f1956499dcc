// EndedJobs: a view in memory of each job that has ended. The journal has its spec and history,
// until ended jobs are too many or too old.
// Ownership: values.  Threads: thread-compatible (the job loop's).
// Units:     Unix seconds.
#ifndef STAGECOACH_COORDINATOR_LOOP_ENDED_JOBS_H_
#define STAGECOACH_COORDINATOR_LOOP_ENDED_JOBS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/job/view/job_view.h"

namespace stagecoach {

class EndedJobs {
 public:
  struct Job {
    uint64_t sequence = 0;
    std::string spec_sha256;  // of the spec's text
    std::shared_ptr<const JobView> view;
  };
  // How many are kept, for how many days; 0 days: for ever.
  EndedJobs(int64_t keep_jobs, double keep_days) : keep_jobs_(keep_jobs), keep_days_(keep_days) {}

  // Without spec and network of the view, as either may be large. One that was set aside stays.
  void Add(const std::string& id, const std::string& spec_sha256, JobView view);
  const Job* Find(const std::string& id) const;  // null: none
  const std::map<std::string, Job>& all() const { return jobs_; }

  bool TooMany(double now) const;  // or one is too old
  // Ids, some of those that there are too many of: the journal does not take long for them.
  std::vector<std::string> ToPurge(double now) const;
  void Forget(const std::string& id);  // of ToPurge

 private:
  using End = std::pair<double, std::string>;  // when it ended, its id

  const int64_t keep_jobs_;
  const double keep_days_;
  std::map<std::string, Job> jobs_;
  std::set<End> by_end_;                           // those that may be purged
  std::map<std::string, std::set<End>> of_owner_;  // the same
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_LOOP_ENDED_JOBS_H_
