// LogQuery: the log lines that a reader wants. FindLogSources finds their present sources: a job's
// stages change with every recovery.
// Threads: FindLogSources: any; `done` runs on the job loop thread and must not block.
// Errors:  NOT_FOUND (job), INVALID_ARGUMENT (stage).
#ifndef STAGECOACH_SERVICES_COORDINATOR_WATCH_LOG_QUERY_H_
#define STAGECOACH_SERVICES_COORDINATOR_WATCH_LOG_QUERY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/loop/job_manager.h"
#include "services/coordinator/stages/stage_observer.h"

namespace stagecoach {

struct LogQuery {
  std::string job_id;            // empty: lines of all jobs, and of none
  std::optional<int32_t> stage;  // only this place in the job's pipeline
};

struct LogSources {
  std::vector<StageTarget> stages;
  bool coordinator = true;
  bool job_ended = false;
  double ended_unix_seconds = 0;  // of a job that has ended
};

void FindLogSources(JobManager& manager, const LogQuery& query,
                    std::function<void(absl::StatusOr<LogSources>)> done);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_WATCH_LOG_QUERY_H_
