// RecordTail: the newest records of jobs as JSON, read and printed once for all streams that show
// them. Texts of jobs with `write` are left out: the page shows none, and they may be long. A
// stream further back than the kept records reads by itself.
// Ownership: borrows the manager.
// Threads:   thread-safe; Read may wait for the job loop, about a second a page.
// Units:     at most kMostLines records of kMostJobs jobs are kept.
// Errors:    if the loop's answer is late, it looks as if nothing were new. If a record cannot be
//            read, the error comes after the records before it.
#ifndef STAGECOACH_SERVICES_COORDINATOR_HTTP_RECORD_TAIL_H_
#define STAGECOACH_SERVICES_COORDINATOR_HTTP_RECORD_TAIL_H_

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/loop/job_manager.h"

namespace stagecoach {

class RecordTail {
 public:
  static constexpr size_t kMostLines = 1000, kMostJobs = 16;
  static constexpr size_t kPageRecords = JobManager::kMostRecords;

  struct Page {
    std::string json;   // the records, separated by commas; empty: nothing new
    uint64_t last = 0;  // number of the last one; `after` if there is none
    bool more = false;  // more records than fit
    absl::Status next;  // why the record after them cannot be read
  };

  explicit RecordTail(JobManager* manager) : manager_(manager) {}
  // Records with number > after, at most kPageRecords. It asks the loop once for each `version` of
  // a job, however many callers there are.
  Page Read(const std::string& job, uint64_t after, double version);

 private:
  struct Line {
    uint64_t number = 0;
    std::string json;
  };
  struct Tail {
    uint64_t base = 0;  // all records with a higher number are here
    double version = -1;
    std::deque<Line> lines;
    absl::Status next;  // as in Page, after all lines
  };
  struct Fetched {
    std::vector<Line> lines;
    bool full = false;  // there may be more
  };
  absl::StatusOr<Fetched> Fetch(const std::string& job, uint64_t after) const;
  void Refresh(const std::string& job, Tail& tail) const;
  static Page PageOf(const std::vector<const Line*>& lines, uint64_t after, bool more);

  JobManager* const manager_;
  std::mutex mutex_;  // guards tails_; threads that wait for it want the records being read
  std::map<std::string, Tail> tails_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_HTTP_RECORD_TAIL_H_
