// Follow: reads a job's records to the end. If the connection breaks or the coordinator restarts,
// it resumes after its last record. So no record is seen twice or missed.
// Threads:   the caller's; a stop may come from any thread.
// Errors:    CANCELLED: a stop was requested. UNAVAILABLE: no answer for `patience_seconds`.
//            NOT_FOUND.
#ifndef STAGECOACH_SERVICES_CLI_CLIENT_FOLLOW_H_
#define STAGECOACH_SERVICES_CLI_CLIENT_FOLLOW_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/threads/clock.h"
#include "services/cli/client/job_client.h"

namespace stagecoach {

// Receives the records; called on the following thread, in order.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual void OnRecord(const v1::WatchJobResponse& record) = 0;
  // The message of its state says what a load is at. It is in no history, and has the number of the
  // record before it.
  virtual void OnLoading(const v1::WatchJobResponse&) {}
  // The coordinator does not answer, and Follow retries; once per outage.
  virtual void OnOutage(const absl::Status& why) = 0;
};

struct FollowOptions {
  uint64_t after = 0;                  // only records with a higher number
  double patience_seconds = 60;        // of one outage
  double first_backoff_seconds = 0.1;  // doubles up to the longest
  double longest_backoff_seconds = 1.0;
  const Clock* clock = SystemClock::Get();
};

// The job's last record. If the coordinator kept no such record, the record is made from the job's
// state.
absl::StatusOr<v1::WatchJobResponse> FollowJob(JobClient& client, const std::string& id,
                                               const FollowOptions& options, RecordSink& sink,
                                               StopSignal* stop);

bool IsTerminal(v1::JobState state);

// The last record of a job that ended, made from its state.
v1::WatchJobResponse FinishedRecordOf(const v1::Job& job);

// Whether the error may pass: the coordinator is away, restarts, or sheds a slow reader.
bool IsPassing(const absl::Status& status);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_CLIENT_FOLLOW_H_
