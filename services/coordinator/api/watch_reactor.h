// WatchReactor: one client's stream of job records. At most kQueuedRecords wait here for a slow
// reader, and of texts about a page (coordinator/job/view/record_page.h). When that many wait, the
// watch ends. Once they are written, a new watch begins behind the
// last record passed on. So a slow watcher loses nothing and holds bounded memory. The manager is
// told at once of a watcher that leaves: a job that stands still has no record by which it would
// find out.
// Ownership: shared by gRPC (until OnDone) and the watch's callbacks.
// Threads:   gRPC callbacks and the job loop; one mutex; no call out of here under it.
#ifndef STAGECOACH_SERVICES_COORDINATOR_API_WATCH_REACTOR_H_
#define STAGECOACH_SERVICES_COORDINATOR_API_WATCH_REACTOR_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "coordinator/loop/job_manager.h"
#include "services/coordinator/api/callers_jobs.h"
#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

class WatchReactor final : public grpc::ServerWriteReactor<v1::WatchJobResponse>,
                           public std::enable_shared_from_this<WatchReactor> {
 public:
  static constexpr size_t kQueuedRecords = 256;
  static constexpr int kMostWatchers = 1000;  // the next one: RESOURCE_EXHAUSTED
  // PERMISSION_DENIED if the job is another user's.
  static WatchReactor* Start(JobManager* manager, const CallersJobs& jobs, const std::string& id,
                             uint64_t after);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  ~WatchReactor() override;

 private:
  WatchReactor(JobManager* manager, const std::string& id, uint64_t after);
  void Subscribe();
  void Leave();  // the client is gone
  bool OnRecord(const JobRecord& record);
  // `shown` gets the number of the record before it. So a client that goes on behind its last number
  // loses none. It is left out if anything waits here, and comes again after some seconds.
  void OnShown(const JobRecord& shown);
  void OnEnded(const absl::Status& status);
  // Does the next step: writes the next record, watches again, or finishes.
  void Proceed();

  JobManager* const manager_;
  const std::string id_;
  std::shared_ptr<WatchReactor> self_;  // until OnDone

  std::mutex mutex_;  // guards what follows
  struct Queued {
    v1::WatchJobResponse record;
    size_t text_bytes = 0;
  };
  std::deque<Queued> queue_;
  size_t queued_text_bytes_ = 0;
  v1::WatchJobResponse writing_;
  uint64_t last_number_;
  bool write_in_flight_ = false;
  bool paused_ = false;    // the queue was full: the watch ended, and begins again when it is empty
  bool gone_ = false;      // the client has gone
  bool finished_ = false;  // Finish was called
  uint64_t watch_ = 0;     // the manager's number of the watch; 0: none
  std::optional<absl::Status> ended_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_API_WATCH_REACTOR_H_
