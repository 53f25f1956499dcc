// DataServiceAdapter: DataService over the catalog of data sets, and the catalog for jobs that are
// submitted. A user has its own sets, an operator all. Hourly it
// removes unnamed sets that no job has used for --data-keep-days.
// Ownership: borrows all of Parts.
// Threads:   gRPC callbacks post and return; work on files runs on one thread of its own with a
//            bounded queue (full: RESOURCE_EXHAUSTED), work that waits for buckets on another one.
//            `done` of Resolve runs on either.
// Errors:    as DataCatalog, with STATE/data in place of its folder.
#ifndef STAGECOACH_SERVICES_COORDINATOR_API_DATA_SERVICE_H_
#define STAGECOACH_SERVICES_COORDINATOR_API_DATA_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/threads/task_thread.h"
#include "base/threads/thread.h"
#include "coordinator/job/job_caller.h"
#include "coordinator/job/view/job_view.h"
#include "services/common/grpc/access/callers.h"
#include "services/coordinator/data/data_catalog.h"
#include "services/coordinator/data/data_resolution.h"
#include "services/coordinator/store/object_grants.h"
#include "stagecoach/v1/data_sets.grpc.pb.h"

namespace stagecoach {

class DataServiceAdapter final : public v1::DataService::CallbackService {
 public:
  static constexpr double kSweepSeconds = 3600;

  using OnJobs = std::function<void(const absl::StatusOr<std::vector<JobView>>&)>;
  struct Parts {
    DataCatalog* catalog = nullptr;
    DataBuckets* buckets = nullptr;  // that jobs may read
    const ObjectGrants* grants = nullptr;
    const Callers* callers = nullptr;  // the server's; null: by certificates only
    // All jobs, as JobManager::List; called on the files' thread, must not block.
    std::function<void(OnJobs done)> list_jobs;
  };
  explicit DataServiceAdapter(const Parts& parts);  // sweeps at once
  ~DataServiceAdapter() override;

  grpc::ServerUnaryReactor* PrepareUpload(grpc::CallbackServerContext* context,
                                          const v1::PrepareUploadRequest* request,
                                          v1::PrepareUploadResponse* response) override;
  grpc::ServerUnaryReactor* PutDataSet(grpc::CallbackServerContext* context,
                                       const v1::PutDataSetRequest* request,
                                       v1::PutDataSetResponse* response) override;
  grpc::ServerUnaryReactor* ListDataSets(grpc::CallbackServerContext* context,
                                         const v1::ListDataSetsRequest* request,
                                         v1::ListDataSetsResponse* response) override;
  grpc::ServerUnaryReactor* OpenDataSet(grpc::CallbackServerContext* context,
                                        const v1::OpenDataSetRequest* request,
                                        v1::OpenDataSetResponse* response) override;
  grpc::ServerUnaryReactor* RemoveDataSet(grpc::CallbackServerContext* context,
                                          const v1::RemoveDataSetRequest* request,
                                          v1::RemoveDataSetResponse* response) override;

  // As ResolveDataPaths. `done` may run at once.
  void Resolve(const JobCaller& caller, const JobSpec& spec,
               std::function<void(absl::StatusOr<ResolvedJob>)> done);
  // As ChangedObjects; empty also if this process is too busy. `done` may run at once.
  void TellChanges(JobSpec then, JobSpec now, std::function<void(const std::string&)> done);

 private:
  using OnReading = std::function<void(const absl::StatusOr<JobsOfSets>&)>;
  absl::StatusOr<JobCaller> CallerOf(const grpc::CallbackServerContext& context) const;
  // For callers, who are told no paths of this machine.
  absl::Status Told(const absl::Status& status) const;
  // Calls `work` on the thread; if it cannot, with the reason at once.
  void Post(std::function<void(const absl::Status&)> work) { Post(files_, std::move(work)); }
  static void Post(TaskThread& thread, std::function<void(const absl::Status&)> work);
  // Runs `work` on the thread and finishes the call with its status.
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                   std::function<absl::Status(const JobCaller&)> work);
  // Calls `then` on the thread with the jobs of that moment.
  void WithJobs(OnReading then);
  // As Answer, with the jobs.
  grpc::ServerUnaryReactor* AnswerWithJobs(
      grpc::CallbackServerContext* context,
      std::function<absl::Status(const JobCaller&, const JobsOfSets&)> work);
  absl::Status RemoveIfUnread(const v1::DataSet& set, const JobsOfSets& jobs);
  void Sweep();
  void SweepHourly();

  const Parts parts_;
  TaskThread files_;
  TaskThread links_;  // jobs with paths in buckets: a slow server delays nobody else
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false;
  Thread sweeper_;  // last: it uses all of the above
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_API_DATA_SERVICE_H_
