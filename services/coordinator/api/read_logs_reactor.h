// ReadLogsReactor: one client's stream of log lines. It sends the lines there are. With `follow` it
// asks for new ones twice a second until the job ends. The sources are asked again only when the
// client has taken all lines. So a slow client only loses lines that the sources drop meanwhile.
// Ownership: shared by gRPC (until OnDone) and the callbacks of the poll under way.
// Threads:   gRPC callbacks, the job loop, a gRPC timer; one mutex; no call out of here under it.
#ifndef STAGECOACH_SERVICES_COORDINATOR_API_READ_LOGS_REACTOR_H_
#define STAGECOACH_SERVICES_COORDINATOR_API_READ_LOGS_REACTOR_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "services/coordinator/api/callers_jobs.h"
#include "services/coordinator/watch/log_query.h"
#include "services/coordinator/watch/log_reader.h"

namespace stagecoach {

class ReadLogsReactor final : public grpc::ServerWriteReactor<v1::ReadLogsResponse>,
                              public std::enable_shared_from_this<ReadLogsReactor> {
 public:
  static constexpr int kMostReaders = 64;       // the next one: RESOURCE_EXHAUSTED
  static constexpr int kLinesPerMessage = 500;  // at 2 KiB a line, well below a message's limit
  static constexpr double kPollSeconds = 0.5;

  struct Parts {
    JobManager* manager = nullptr;
    StageObserver* stages = nullptr;
    const LogRing* own = nullptr;
  };
  // PERMISSION_DENIED if the job is another user's, or if a caller that may see only its
  // own jobs asks for the lines of all.
  static ReadLogsReactor* Start(const Parts& parts, const CallersJobs& jobs,
                                const v1::ReadLogsRequest& request);
  ~ReadLogsReactor() override;

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  ReadLogsReactor(const Parts& parts, const CallersJobs& jobs, const v1::ReadLogsRequest& request);
  void Poll();
  void OnSources(absl::StatusOr<LogSources> sources);
  void OnLines(v1::ReadLogsResponse response);
  void End(const absl::Status& status);
  // Does the next step: writes waiting lines, sets the timer for the next poll, or finishes.
  void Proceed();
  void SetTimer();

  const Parts parts_;
  const LogQuery query_;
  const bool follow_;
  const bool own_only_;  // no lines without a job: they concern all users
  const std::shared_ptr<LogReader> reader_;
  std::shared_ptr<ReadLogsReactor> self_;  // until OnDone
  grpc::Alarm timer_;

  std::mutex mutex_;  // guards what follows
  std::deque<v1::ReadLogsResponse> queue_;
  v1::ReadLogsResponse writing_;
  uint32_t tail_;  // of the next poll
  bool write_in_flight_ = false;
  bool polling_ = true;    // a poll or the timer for it is under way
  bool last_poll_ = true;  // the current poll brings the last lines
  bool finished_ = false;  // Finish was called
  std::optional<absl::Status> ended_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_API_READ_LOGS_REACTOR_H_
