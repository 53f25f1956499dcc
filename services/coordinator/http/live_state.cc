#include "services/coordinator/http/live_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/coordinator/convert/convert_job.h"
#include "services/coordinator/http/http_json.h"
#include "services/coordinator/watch/await.h"

namespace stagecoach {
const JobView* LiveState::Snapshot::Find(const std::string& id) const {
  for (const JobView& job : jobs) {
    if (job.id == id) return &job;
  }
  return nullptr;
}

std::shared_ptr<const LiveState::Snapshot> LiveState::Latest() {
  std::lock_guard<std::mutex> lock(mutex_);
  const bool fresh =
      latest_ != nullptr && clock_->MonotonicSeconds() - latest_->taken_seconds < kMaxAgeSeconds;
  if (!fresh) {
    if (std::shared_ptr<const Snapshot> taken = Take()) latest_ = std::move(taken);
  }
  return latest_;
}

std::shared_ptr<const LiveState::Snapshot> LiveState::Take() const {
  auto jobs = AwaitOk<std::vector<JobView>>(kLoopAnswerSeconds,
                                            [this](auto done) { manager_->List(done); });
  auto stages = Await<std::vector<StageView>>(kLoopAnswerSeconds,
                                              [this](auto done) { manager_->ListStages(done); });
  if (!jobs.has_value() || !stages.has_value()) return nullptr;
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->taken_seconds = clock_->MonotonicSeconds();
  snapshot->jobs = *std::move(jobs);
  for (JobView& job : snapshot->jobs) {
    job.spec = nullptr;  // it is the job's, which may end before the next look at it
    absl::StrAppend(&snapshot->states, job.id, " ", JobPhaseName(job.phase), "\n");
  }
  if (latest_ != nullptr && latest_->states == snapshot->states) {
    snapshot->jobs_json = latest_->jobs_json;
  } else {
    JobManager::Page page;
    page.jobs = snapshot->jobs;
    if (page.jobs.size() > kPageJobs) {
      page.jobs.resize(kPageJobs);
      page.next = page.jobs.back().sequence;
    }
    snapshot->jobs_json = ToJson(ToProto(page));
  }
  v1::ListStagesResponse response;
  for (const StageView& stage : *stages) *response.add_stages() = ToProto(stage);
  snapshot->stages_json = ToJson(response);
  return snapshot;
}

}  // namespace stagecoach
