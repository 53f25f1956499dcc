#include "services/coordinator/watch/log_query.h"

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

absl::StatusOr<LogSources> SourcesOf(const JobView& view, const LogQuery& query) {
  LogSources sources;
  sources.stages = TargetsOf(view);
  sources.job_ended = IsTerminal(view.phase);
  if (!query.stage.has_value()) return sources;
  const size_t stages = sources.stages.size();
  const int32_t stage = *query.stage;
  if (stage < 0 || (stages > 0 && static_cast<size_t>(stage) >= stages)) {
    return absl::InvalidArgumentError(
        absl::StrCat("stage=", stage, ": job ", view.id, " has the stages 0 to ", stages - 1));
  }
  sources.coordinator = false;
  if (stages > 0) sources.stages = {sources.stages[stage]};  // none: the job waits for stages
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
                                stage.registration.name, stage.registration.address});
    }
    done(std::move(sources));
  });
}

}  // namespace stagecoach
