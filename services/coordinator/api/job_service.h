// JobServiceAdapter: JobService over the job manager and the checkpoint store. A user's certificate
// opens that user's own
//            jobs (callers_jobs.h). Names of data sets in a job's paths become ids before the
//            manager gets it (services/coordinator/data/data_resolution.h).
// Ownership: borrows all of Parts.
// Threads:   gRPC callbacks post and return; work on files runs on one worker thread with a bounded
//            queue (full: RESOURCE_EXHAUSTED).
#ifndef STAGECOACH_SERVICES_COORDINATOR_API_JOB_SERVICE_H_
#define STAGECOACH_SERVICES_COORDINATOR_API_JOB_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "base/threads/task_thread.h"
#include "checkpoint/store/store.h"
#include "coordinator/loop/job_manager.h"
#include "services/common/observe/log_ring.h"
#include "services/coordinator/api/callers_jobs.h"
#include "services/coordinator/api/data_service.h"
#include "services/coordinator/stages/stage_observer.h"
#include "services/coordinator/store/object_grants.h"
#include "services/coordinator/watch/export_sweep.h"
#include "services/coordinator/watch/trace_collector.h"
#include "stagecoach/v1/job.grpc.pb.h"

namespace stagecoach {

class JobServiceAdapter final : public v1::JobService::CallbackService {
 public:
  struct Parts {
    JobManager* manager = nullptr;
    CheckpointStore* checkpoints = nullptr;
    FileSystem* file_system = nullptr;
    const JobCodec* codec = nullptr;
    const Callers* callers = nullptr;          // the server's; null: by certificates only
    std::string export_folder, record_folder;  // of all jobs
    ExportSweep* exports = nullptr;            // of export_folder; null: exports stay
    const ObjectGrants* grants = nullptr;      // to read files in both
    DataServiceAdapter* data = nullptr;        // null: jobs name no data sets
    StageObserver* stages = nullptr;
    TraceCollector* traces = nullptr;
    const LogRing* log = nullptr;  // the coordinator's own
  };
  explicit JobServiceAdapter(const Parts& parts);

  grpc::ServerUnaryReactor* SubmitJob(grpc::CallbackServerContext* context,
                                      const v1::SubmitJobRequest* request,
                                      v1::SubmitJobResponse* response) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request,
                                   v1::GetJobResponse* response) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchJobResponse>* WatchJob(
      grpc::CallbackServerContext* context, const v1::WatchJobRequest* request) override;
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const v1::CancelJobRequest* request,
                                      v1::CancelJobResponse* response) override;
  grpc::ServerUnaryReactor* ResumeJob(grpc::CallbackServerContext* context,
                                      const v1::ResumeJobRequest* request,
                                      v1::ResumeJobResponse* response) override;
  grpc::ServerUnaryReactor* PlanJob(grpc::CallbackServerContext* context,
                                    const v1::PlanJobRequest* request,
                                    v1::PlanJobResponse* response) override;
  grpc::ServerUnaryReactor* ListCheckpoints(grpc::CallbackServerContext* context,
                                            const v1::ListCheckpointsRequest* request,
                                            v1::ListCheckpointsResponse* response) override;
  grpc::ServerUnaryReactor* RemoveCheckpoints(grpc::CallbackServerContext* context,
                                              const v1::RemoveCheckpointsRequest* request,
                                              v1::RemoveCheckpointsResponse* response) override;
  grpc::ServerUnaryReactor* RemoveJob(grpc::CallbackServerContext* context,
                                      const v1::RemoveJobRequest* request,
                                      v1::RemoveJobResponse* response) override;
  grpc::ServerUnaryReactor* ExportWeights(grpc::CallbackServerContext* context,
                                          const v1::ExportWeightsRequest* request,
                                          v1::ExportWeightsResponse* response) override;
  grpc::ServerUnaryReactor* GetRecordFiles(grpc::CallbackServerContext* context,
                                           const v1::GetRecordFilesRequest* request,
                                           v1::GetRecordFilesResponse* response) override;
  grpc::ServerUnaryReactor* GetTrace(grpc::CallbackServerContext* context,
                                     const v1::GetTraceRequest* request,
                                     v1::GetTraceResponse* response) override;
  grpc::ServerUnaryReactor* GetShownPictures(grpc::CallbackServerContext* context,
                                             const v1::GetShownPicturesRequest* request,
                                             v1::GetShownPicturesResponse* response) override;
  grpc::ServerWriteReactor<v1::ReadLogsResponse>* ReadLogs(
      grpc::CallbackServerContext* context, const v1::ReadLogsRequest* request) override;

 private:
  // Runs `work` on the worker and finishes the call with its status.
  void PostWork(grpc::ServerUnaryReactor* reactor, std::function<absl::Status()> work);
  // As PostWork, for work that reads the job's checkpoints: none is removed meanwhile.
  void PostReading(grpc::ServerUnaryReactor* reactor, const std::string& job,
                   std::function<absl::Status()> work);
  JobFiles Files() const {
    return {parts_.checkpoints, parts_.file_system, parts_.export_folder, parts_.record_folder};
  }
  // The error for users; logs the parts that they may not see.
  absl::Status Told(const absl::Status& status, const std::string& what) const;
  absl::Status ExportTo(const v1::ExportWeightsRequest& request, const JobSpec& spec,
                        v1::ExportWeightsResponse* response);
  absl::Status FindRecords(const std::string& job, v1::GetRecordFilesResponse* response) const;

  // Calls `then` with the spec as the manager takes it, at once if no path is in a data set.
  void Resolve(const JobCaller& caller, const absl::StatusOr<JobSpec>& spec,
               std::function<void(absl::StatusOr<ResolvedJob>)> then) const;
  // Answers a submission under the id of another job: if objects of its buckets have changed, with them.
  void ReplyExists(const CallersJobs& jobs, const std::string& id,
                   std::shared_ptr<const ResolvedJob> job, const absl::Status& exists,
                   std::function<void(const absl::StatusOr<JobView>&)> reply) const;
  // The jobs as the caller may use them; streams have the manager as well, behind a check.
  CallersJobs Jobs(const grpc::CallbackServerContext& context) const;

  JobManager* const manager_;
  const Parts parts_;
  TaskThread files_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_API_JOB_SERVICE_H_
