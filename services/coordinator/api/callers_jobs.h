// CallersJobs: the job manager for one caller of JobService. Each call first checks that the caller
// may use the job. Other code of the service has no manager.
// Ownership: borrows the manager; a value for one call, not needed by the time of the answer.
// Threads:   as JobManager.
// Errors:    PERMISSION_DENIED for another user's job, else JobManager's.
#ifndef STAGECOACH_SERVICES_COORDINATOR_API_CALLERS_JOBS_H_
#define STAGECOACH_SERVICES_COORDINATOR_API_CALLERS_JOBS_H_

#include <functional>
#include <string>

#include "coordinator/job/job_caller.h"
#include "coordinator/loop/job_manager.h"
#include "services/common/grpc/access/callers.h"

namespace stagecoach {

// The name is "ROLE/NAME", and all but operators have only their own jobs. A caller that was
// admitted without a role has no name, and may do everything.
JobCaller JobCallerOf(const Caller& caller);

class CallersJobs {
 public:
  using OnView = std::function<void(absl::StatusOr<JobView>)>;

  CallersJobs(JobManager* manager, JobCaller caller)
      : manager_(manager), caller_(std::move(caller)) {}

  const JobCaller& caller() const { return caller_; }
  // As in JobManager.
  void Submit(const std::string& id_or_empty, const JobSpec& spec, OnView done,
              std::function<bool()> wanted) const;
  void PlanJob(const JobSpec& spec, std::function<void(absl::StatusOr<Plan>)> done,
               std::function<bool()> wanted) const;
  void ListPage(uint64_t before, size_t most,
                std::function<void(absl::StatusOr<JobManager::Page>)> done) const;
  void Get(const std::string& id, OnView done) const;
  void Shown(const std::string& id, std::function<void(absl::StatusOr<ShownTexts>)> done) const;
  void Cancel(const std::string& id, OnView done) const;
  void Resume(const std::string& id, int64_t stages, OnView done) const;
  void RemoveJob(const std::string& id, std::function<void(absl::StatusOr<JobUsage>)> done) const;
  void RemoveCheckpoints(const std::string& id, const std::vector<uint64_t>& steps, bool missing_ok,
                         std::function<void(absl::StatusOr<RemovedCheckpoints>)> done) const;
  // For streams, which call repeatedly. One OK suffices, because a job's owner never changes.
  void Check(const std::string& id, std::function<void(absl::Status)> done) const;

 private:
  // Calls `act` with `done` if the caller may, else `done` with the reason.
  template <typename Answer>
  void IfItMay(const std::string& id, std::function<void(absl::StatusOr<Answer>)> done,
               std::function<void(std::function<void(absl::StatusOr<Answer>)>)> act) const;

  JobManager* const manager_;
  const JobCaller caller_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_API_CALLERS_JOBS_H_
