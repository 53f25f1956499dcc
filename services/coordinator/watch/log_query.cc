#include "services/coordinator/watch/log_query.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

absl::StatusOr<LogSources> SourcesOf(const JobView& view, const LogQuery& query) {
  LogSources sources;
  sources.stages = TargetsOf(view);
  sources.job_ended = IsTerminal(view.phase);
  if (sources.job_ended) sources.ended_unix_seconds = view.finished_unix_seconds;
  if (!query.stage.has_value()) return sources;
  const int32_t stage = *query.stage;
  // 0: it is not known yet how many there will be.
  if (stage < 0 || (view.pipeline_stages > 0 && stage >= view.pipeline_stages)) {
    return absl::InvalidArgumentError(absl::StrCat("stage=", stage, ": job ", view.id,
                                                   " has the stages 0 to ",
                                                   std::max(0, view.pipeline_stages - 1)));
  }
  sources.coordinator = false;
  // None is left where the job waits for stages.
  std::erase_if(sources.stages,
                [stage](const StageTarget& target) { return target.stage != stage; });
  return sources;
}

}  // namespace

void FindLogSources(JobManager& manager, const LogQuery& query,
                    std::function<void(absl::StatusOr<LogSources>)> done) {
  if (!query.job_id.empty()) {
    manager.Get(query.job_id, [query, done](const absl::StatusOr<JobView>& view) {
      if (!view.ok()) return done(view.status());
      done(SourcesOf(*view, query));
    });
    return;
  }
  if (query.stage.has_value()) {
    return done(absl::InvalidArgumentError("stage: is a place in a job's pipeline; name a job"));
  }
  manager.ListStages([done](const std::vector<StageView>& stages) {
    LogSources sources;
    for (const StageView& stage : stages) {
      if (stage.state == StageState::kLost) continue;
      sources.stages.push_back({static_cast<int32_t>(sources.stages.size()),
                                {stage.registration.name, stage.registration.address}});
    }
    done(std::move(sources));
  });
}

}  // namespace stagecoach
