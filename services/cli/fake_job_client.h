// FakeJobClient: a coordinator in memory for tests of the commands: one job with a list of records,
// and outages on demand.
#ifndef STAGECOACH_SERVICES_CLI_FAKE_JOB_CLIENT_H_
#define STAGECOACH_SERVICES_CLI_FAKE_JOB_CLIENT_H_

#include <deque>
#include <string>
#include <vector>

#include "services/cli/job_client.h"

namespace stagecoach {

class FakeJobClient final : public JobClient {
 public:
  v1::Job job;                                // the only one
  std::vector<v1::WatchJobResponse> records;  // its history
  // What the next watches do: give so many records at most, then end with the status. When the list
  // is used up, a watch gives all that is left and ends in order.
  struct WatchPlan {
    size_t records = 0;
    absl::Status end;
  };
  std::deque<WatchPlan> watches;
  absl::Status reachable;              // of all calls but Watch
  std::vector<uint64_t> watched_from;  // `after` of every watch
  int submits = 0;

  absl::StatusOr<v1::Job> Submit(const std::string& id, const v1::JobSpec& spec) override {
    ++submits;
    if (!reachable.ok()) return reachable;
    if (job.id() == id && job.spec().SerializeAsString() != spec.SerializeAsString()) {
      return absl::AlreadyExistsError("job " + id);
    }
    job.set_id(id);
    *job.mutable_spec() = spec;
    return job;
  }
  absl::StatusOr<v1::Job> Get(const std::string& id) override {
    if (!reachable.ok()) return reachable;
    if (id != job.id()) return absl::NotFoundError("job " + id);
    return job;
  }
  absl::StatusOr<v1::ListJobsResponse> List() override {
    if (!reachable.ok()) return reachable;
    v1::ListJobsResponse response;
    *response.add_jobs() = job;
    return response;
  }
  absl::StatusOr<v1::Job> Cancel(const std::string& id) override { return Get(id); }
  absl::StatusOr<v1::PlanJobResponse> Plan(const v1::JobSpec&) override {
    if (!reachable.ok()) return reachable;
    return v1::PlanJobResponse();
  }
  absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(const std::string&, bool) override {
    return v1::ListCheckpointsResponse();
  }
  absl::StatusOr<v1::ExportWeightsResponse> Export(const std::string&, int64_t) override {
    return v1::ExportWeightsResponse();
  }
  absl::StatusOr<v1::ListStagesResponse> ListStages() override { return v1::ListStagesResponse(); }
  absl::Status Watch(const std::string&, uint64_t after,
                     const std::function<void(const v1::WatchJobResponse&)>& on_record,
                     StopSignal*) override {
    watched_from.push_back(after);
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

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_FAKE_JOB_CLIENT_H_
