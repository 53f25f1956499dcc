// JobClient: the calls that the commands make on a coordinator; tests put a fake in its place.
// Threads:   one thread per object, except that a StopSignal from any thread ends a Watch.
// Errors:    the coordinator's codes; UNAVAILABLE and DEADLINE_EXCEEDED name its address. Every
//            call has a deadline.
#ifndef STAGECOACH_SERVICES_CLI_CLIENT_JOB_CLIENT_H_
#define STAGECOACH_SERVICES_CLI_CLIENT_JOB_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "services/cli/client/data_client.h"
#include "services/cli/client/fetch_export.h"
#include "services/cli/client/stop_signal.h"
#include "services/common/process/server_flags.h"
#include "stagecoach/v1/fleet.pb.h"
#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

class JobClient {
 public:
  virtual ~JobClient() = default;

  virtual absl::StatusOr<v1::Job> Submit(const std::string& id, const v1::JobSpec& spec) = 0;
  virtual absl::StatusOr<v1::Job> Get(const std::string& id) = 0;
  // Also with what the job occupies; an older coordinator leaves `usage` out.
  virtual absl::StatusOr<v1::Job> GetWithUsage(const std::string& id) = 0;
  virtual absl::StatusOr<v1::ListJobsResponse> List() = 0;  // all pages; jobs without their specs
  virtual absl::StatusOr<v1::Job> Cancel(const std::string& id) = 0;
  // stages 0: as the job says.
  virtual absl::StatusOr<v1::ResumeJobResponse> Resume(const std::string& id, int64_t stages) = 0;
  virtual absl::StatusOr<v1::PlanJobResponse> Plan(const v1::JobSpec& spec) = 0;
  virtual absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(const std::string& job,
                                                                      bool verify) = 0;
  virtual absl::StatusOr<v1::RemoveCheckpointsResponse> RemoveCheckpoints(
      const v1::RemoveCheckpointsRequest& request) = 0;
  virtual absl::StatusOr<v1::RemoveJobResponse> RemoveJob(const std::string& id) = 0;
  // step < 0: the newest checkpoint. average: the averages of the weights.
  virtual absl::StatusOr<v1::ExportWeightsResponse> Export(const std::string& job, int64_t step,
                                                           bool average) = 0;
  // Brings the files of an export into a folder, which exists and is empty. CANCELLED: a stop was
  // requested.
  virtual absl::Status Fetch(const v1::ExportWeightsResponse& exported, const std::string& folder,
                             const OnFetched& on_fetched, StopSignal* stop) = 0;
  virtual absl::StatusOr<v1::GetRecordFilesResponse> RecordFiles(const std::string& job) = 0;
  // As Fetch, of a job's history.
  virtual absl::Status FetchRecords(const v1::GetRecordFilesResponse& records,
                                    const std::string& folder, const OnFetched& on_fetched,
                                    StopSignal* stop) = 0;
  virtual absl::StatusOr<v1::ListStagesResponse> ListStages() = 0;
  virtual DataClient& data() = 0;  // lives as long as this object
  // steps 0: all that the stages still hold.
  virtual absl::StatusOr<v1::GetTraceResponse> GetTrace(const std::string& job, uint32_t steps) = 0;

  // Hands on records with a number above `after`, until the job ends (ok) or the connection breaks.
  // DEADLINE_EXCEEDED: one stream has reached its limit of some minutes. CANCELLED: a stop was
  // requested.
  virtual absl::Status Watch(const std::string& id, uint64_t after,
                             const std::function<void(const v1::WatchJobResponse&)>& on_record,
                             StopSignal* stop) = 0;
  // Hands on log lines until the coordinator has no more (ok). With `follow` that is when the job
  // ends. Otherwise it ends like Watch.
  virtual absl::Status ReadLogs(const v1::ReadLogsRequest& request,
                                const std::function<void(const v1::ReadLogsResponse&)>& on_lines,
                                StopSignal* stop) = 0;
};

struct ClientOptions {
  std::string address;
  TlsFlags tls;
  double timeout_seconds = 10;
  std::string cluster;   // whose address and files these are, for errors; empty: those of flags
  absl::Status problem;  // of a profile or variable; every attempt to connect answers it
};

absl::StatusOr<std::unique_ptr<JobClient>> ConnectJobClient(const ClientOptions& options);

// grpc.health.v1 of any server; ok if it serves. UNAVAILABLE otherwise.
absl::Status CheckHealth(const ClientOptions& options);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_CLIENT_JOB_CLIENT_H_
