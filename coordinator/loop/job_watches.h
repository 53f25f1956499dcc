// JobWatches: the watchers of jobs' histories. They get records from the journal, so none learns
// more than what is on disk.
// Ownership: borrows the journal.
// Threads:   the job loop's, but for count. Watchers run on it, and must not block.
#ifndef STAGECOACH_COORDINATOR_LOOP_JOB_WATCHES_H_
#define STAGECOACH_COORDINATOR_LOOP_JOB_WATCHES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/journal/journal.h"
#include "coordinator/loop/job_manager.h"

namespace stagecoach {

class JobWatches {
 public:
  // Of one turn, which is a page of them: the loop has other work in between.
  static constexpr int kMostRecords = 256;
  // Outlook of a job whose watcher has all records on disk. nullopt: more will come. OK: the job
  // has ended. An error: new records cannot be written.
  using Outlook = std::function<std::optional<absl::Status>(const std::string& job)>;
  // post: runs work on the loop's thread, later.
  JobWatches(Journal* journal, std::function<void(std::function<void()>)> post, Outlook outlook)
      : journal_(*journal), post_(std::move(post)), outlook_(std::move(outlook)) {}

  // Records with number > after, at most `limit` and kMostRecords, and one page.
  // FAILED_PRECONDITION: the first one cannot be read.
  absl::StatusOr<std::vector<JobRecord>> Read(const std::string& job, uint64_t after,
                                              int limit) const;
  void Add(uint64_t watch_id, const std::string& job, uint64_t after, JobManager::Watcher watcher,
           std::function<void(absl::Status)> ended, JobManager::OnShown on_shown = {});
  void Drop(uint64_t watch_id);
  void Pump(const std::set<std::string>& jobs);  // of these, soon
  // Shows the job's watchers what is in no history.
  void Show(const std::string& job, const JobRecord& shown) const;
  void End(const absl::Status& reason);     // all of them
  int64_t count() const { return count_; }  // any thread

 private:
  struct Watch {
    std::string job;
    uint64_t cursor = 0;  // the last record it was given
    bool idle = true;     // no PumpOne is on its way
    JobManager::Watcher watcher;
    std::function<void(absl::Status)> ended;
    JobManager::OnShown on_shown;  // may be empty
  };
  void PumpOne(uint64_t watch_id);
  void EndOne(uint64_t watch_id, const absl::Status& status);

  Journal& journal_;
  const std::function<void(std::function<void()>)> post_;
  const Outlook outlook_;
  std::map<uint64_t, Watch> watches_;
  std::map<std::string, std::set<uint64_t>> of_job_;
  std::atomic<int64_t> count_{0};
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_LOOP_JOB_WATCHES_H_
