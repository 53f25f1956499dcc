// FakeJobClient: a coordinator in memory for tests of the commands: one job with a list of records,
// and outages on demand.
#ifndef STAGECOACH_SERVICES_CLI_TESTING_FAKE_JOB_CLIENT_H_
#define STAGECOACH_SERVICES_CLI_TESTING_FAKE_JOB_CLIENT_H_

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "services/cli/client/job_client.h"
#include "services/cli/testing/fake_data_client.h"

namespace stagecoach {

class FakeJobClient final : public JobClient {
 public:
  v1::Job job;                                // the only one
  std::vector<v1::WatchJobResponse> records;  // its history
  // Plans of the next watches: each gives at most a number of records, then ends with the status.
  // When the list is used up, a watch gives all that is left and ends in order.
  struct WatchPlan {
    size_t records = 0;
    absl::Status end;
  };
  std::deque<WatchPlan> watches;
  absl::Status reachable;              // of all calls but Watch
  absl::Status usage_answer;           // of GetWithUsage
  std::vector<uint64_t> watched_from;  // `after` of every watch
  int submits = 0;
  absl::Status submit_refused;         // of every Submit
  absl::Status submit_answer_lost;     // of every Submit that takes the job
  std::function<void()> on_submit;     // called at the end of every Submit that takes the job
  std::vector<std::string> cancelled;  // of every Cancel
  std::function<void()> on_watch;      // called at the beginning of every watch; empty: none
  v1::ExportWeightsResponse exported;
  std::function<absl::Status(const v1::ExportWeightsResponse&, const std::string& folder,
                             const OnFetched&)>
      fetch;  // what Fetch does
  v1::GetRecordFilesResponse record_files;
  std::function<absl::Status(const v1::GetRecordFilesResponse&, const std::string& folder,
                             const OnFetched&)>
      fetch_records;  // what FetchRecords does
  bool exported_average = false;
  std::vector<int64_t> exported_steps;                 // `step` of every Export
  uint64_t resumed_after = 0;                          // last record at the Resume
  std::vector<int64_t> resumed_stages;                 // of every Resume
  v1::ListCheckpointsResponse checkpoints;             // of every job
  std::vector<v1::RemoveCheckpointsRequest> removals;  // of every RemoveCheckpoints
  v1::RemoveCheckpointsResponse removed;
  std::vector<v1::Job> ended;                         // `list` has them after the one
  std::vector<std::string> removed_jobs;              // of every RemoveJob
  std::map<std::string, absl::Status> not_removable;  // of RemoveJob, by id
  v1::GetTraceResponse trace;
  std::vector<uint32_t> traced_steps;  // `steps` of every GetTrace
  // Plans of the next readings of logs, each with its end; none left: no lines, and OK.
  struct LogPlan {
    std::vector<v1::ReadLogsResponse> responses;
    absl::Status end;
  };
  std::deque<LogPlan> log_plans;
  std::vector<v1::ReadLogsRequest> log_requests;

  absl::StatusOr<v1::Job> Submit(const std::string& id, const v1::JobSpec& spec) override {
    ++submits;
    if (!reachable.ok()) return reachable;
    if (!submit_refused.ok()) return submit_refused;
    if (job.id() == id && job.spec().SerializeAsString() != spec.SerializeAsString()) {
      return absl::AlreadyExistsError("job " + id);
    }
    job.set_id(id);
    *job.mutable_spec() = spec;
    job.mutable_summary()->set_name(spec.name());
    job.set_total_steps(spec.training().steps());
    if (on_submit) on_submit();
    if (!submit_answer_lost.ok()) return submit_answer_lost;
    return job;
  }
  absl::StatusOr<v1::Job> Get(const std::string& id) override {
    if (!reachable.ok()) return reachable;
    if (id != job.id()) return absl::NotFoundError("job " + id);
    return job;
  }
  absl::StatusOr<v1::Job> GetWithUsage(const std::string& id) override {
    if (!usage_answer.ok()) return usage_answer;
    for (const v1::Job& one : ended) {
      if (one.id() == id) return one;
    }
    return Get(id);
  }
  absl::StatusOr<v1::ListJobsResponse> List() override {
    if (!reachable.ok()) return reachable;
    v1::ListJobsResponse response;
    *response.add_jobs() = job;
    for (const v1::Job& one : ended) {
      *response.add_jobs() = one;
      response.mutable_jobs()->rbegin()->clear_usage();
    }
    return response;
  }
  absl::StatusOr<v1::RemoveCheckpointsResponse> RemoveCheckpoints(
      const v1::RemoveCheckpointsRequest& request) override {
    removals.push_back(request);
    if (!reachable.ok()) return reachable;
    return removed;
  }
  absl::StatusOr<v1::RemoveJobResponse> RemoveJob(const std::string& id) override {
    removed_jobs.push_back(id);
    if (!reachable.ok()) return reachable;
    if (const auto why = not_removable.find(id); why != not_removable.end()) return why->second;
    v1::RemoveJobResponse response;
    response.set_id(id);
    *response.mutable_freed() = GetWithUsage(id)->usage();
    return response;
  }
  absl::StatusOr<v1::Job> Cancel(const std::string& id) override {
    cancelled.push_back(id);
    return Get(id);
  }
  absl::StatusOr<v1::ResumeJobResponse> Resume(const std::string& id, int64_t stages) override {
    resumed_stages.push_back(stages);
    if (!reachable.ok()) return reachable;
    if (id != job.id()) return absl::NotFoundError("job " + id);
    if (stages > 0) job.mutable_spec()->mutable_pipeline()->set_stages(stages);
    job.set_detail("recovering");
    v1::ResumeJobResponse response;
    *response.mutable_job() = job;
    response.set_last_record(resumed_after);
    return response;
  }
  absl::StatusOr<v1::PlanJobResponse> Plan(const v1::JobSpec&) override {
    if (!reachable.ok()) return reachable;
    return v1::PlanJobResponse();
  }
  absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(const std::string&, bool) override {
    return checkpoints;
  }
  absl::StatusOr<v1::ExportWeightsResponse> Export(const std::string&, int64_t step,
                                                   bool average) override {
    exported_average = average;
    exported_steps.push_back(step);
    return exported;
  }
  absl::Status Fetch(const v1::ExportWeightsResponse& of, const std::string& folder,
                     const OnFetched& on_fetched, StopSignal*) override {
    if (!fetch) return absl::UnimplementedError("no files");
    return fetch(of, folder, on_fetched);
  }
  absl::StatusOr<v1::GetRecordFilesResponse> RecordFiles(const std::string& id) override {
    if (!reachable.ok()) return reachable;
    if (id != job.id()) return absl::NotFoundError("job " + id);
    return record_files;
  }
  absl::Status FetchRecords(const v1::GetRecordFilesResponse& of, const std::string& folder,
                            const OnFetched& on_fetched, StopSignal*) override {
    if (!fetch_records) return absl::UnimplementedError("no files");
    return fetch_records(of, folder, on_fetched);
  }
  FakeDataClient store;
  DataClient& data() override {
    store.reachable = reachable;
    return store;
  }
  absl::StatusOr<v1::ListStagesResponse> ListStages() override { return v1::ListStagesResponse(); }
  absl::StatusOr<v1::GetTraceResponse> GetTrace(const std::string& id, uint32_t steps) override {
    if (!reachable.ok()) return reachable;
    if (id != job.id()) return absl::NotFoundError("job " + id);
    traced_steps.push_back(steps);
    return trace;
  }
  absl::Status ReadLogs(const v1::ReadLogsRequest& request,
                        const std::function<void(const v1::ReadLogsResponse&)>& on_lines,
                        StopSignal*) override {
    log_requests.push_back(request);
    if (!reachable.ok()) return reachable;
    if (request.job_id() != job.id()) return absl::NotFoundError("job " + request.job_id());
    if (log_plans.empty()) return absl::OkStatus();
    const LogPlan plan = log_plans.front();
    log_plans.pop_front();
    for (const v1::ReadLogsResponse& response : plan.responses) on_lines(response);
    return plan.end;
  }
  absl::Status Watch(const std::string&, uint64_t after,
                     const std::function<void(const v1::WatchJobResponse&)>& on_record,
                     StopSignal*) override {
    watched_from.push_back(after);
    if (on_watch) on_watch();
    WatchPlan plan{records.size(), absl::OkStatus()};
    if (!watches.empty()) {
      plan = watches.front();
      watches.pop_front();
    }
    for (const v1::WatchJobResponse& record : records) {
      if (record.number() <= after || plan.records == 0) continue;
      --plan.records;
      on_record(record);
    }
    return plan.end;
  }
};

// BorrowedJobClient: hands every call on to a client of the test; commands own theirs.
class BorrowedJobClient final : public JobClient {
 public:
  explicit BorrowedJobClient(JobClient* to) : to_(to) {}
  absl::StatusOr<v1::Job> Submit(const std::string& id, const v1::JobSpec& spec) override {
    return to_->Submit(id, spec);
  }
  absl::StatusOr<v1::Job> Get(const std::string& id) override { return to_->Get(id); }
  absl::StatusOr<v1::Job> GetWithUsage(const std::string& id) override {
    return to_->GetWithUsage(id);
  }
  absl::StatusOr<v1::RemoveCheckpointsResponse> RemoveCheckpoints(
      const v1::RemoveCheckpointsRequest& request) override {
    return to_->RemoveCheckpoints(request);
  }
  absl::StatusOr<v1::RemoveJobResponse> RemoveJob(const std::string& id) override {
    return to_->RemoveJob(id);
  }
  absl::StatusOr<v1::ListJobsResponse> List() override { return to_->List(); }
  absl::StatusOr<v1::Job> Cancel(const std::string& id) override { return to_->Cancel(id); }
  absl::StatusOr<v1::ResumeJobResponse> Resume(const std::string& id, int64_t stages) override {
    return to_->Resume(id, stages);
  }
  absl::StatusOr<v1::PlanJobResponse> Plan(const v1::JobSpec& spec) override {
    return to_->Plan(spec);
  }
  absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(const std::string& job,
                                                              bool verify) override {
    return to_->ListCheckpoints(job, verify);
  }
  absl::StatusOr<v1::ExportWeightsResponse> Export(const std::string& job, int64_t step,
                                                   bool average) override {
    return to_->Export(job, step, average);
  }
  absl::Status Fetch(const v1::ExportWeightsResponse& of, const std::string& folder,
                     const OnFetched& on_fetched, StopSignal* stop) override {
    return to_->Fetch(of, folder, on_fetched, stop);
  }
  absl::StatusOr<v1::GetRecordFilesResponse> RecordFiles(const std::string& job) override {
    return to_->RecordFiles(job);
  }
  absl::Status FetchRecords(const v1::GetRecordFilesResponse& of, const std::string& folder,
                            const OnFetched& on_fetched, StopSignal* stop) override {
    return to_->FetchRecords(of, folder, on_fetched, stop);
  }
  absl::StatusOr<v1::ListStagesResponse> ListStages() override { return to_->ListStages(); }
  DataClient& data() override { return to_->data(); }
  absl::StatusOr<v1::GetTraceResponse> GetTrace(const std::string& job, uint32_t steps) override {
    return to_->GetTrace(job, steps);
  }
  absl::Status Watch(const std::string& id, uint64_t after,
                     const std::function<void(const v1::WatchJobResponse&)>& on_record,
                     StopSignal* stop) override {
    return to_->Watch(id, after, on_record, stop);
  }
  absl::Status ReadLogs(const v1::ReadLogsRequest& request,
                        const std::function<void(const v1::ReadLogsResponse&)>& on_lines,
                        StopSignal* stop) override {
    return to_->ReadLogs(request, on_lines, stop);
  }

 private:
  JobClient* const to_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TESTING_FAKE_JOB_CLIENT_H_
