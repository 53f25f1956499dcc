// StageObserver: the coordinator's questions to stages for show only: clock, trace, log lines.
// StageClient, which drives training, is apart; GrpcStageClient implements both.
// Ownership: borrowed by its users.
// Threads:   thread-safe; `done` runs on any thread, exactly once, and must not block.
// Errors:    as StageClient.
#ifndef STAGECOACH_SERVICES_COORDINATOR_STAGES_STAGE_OBSERVER_H_
#define STAGECOACH_SERVICES_COORDINATOR_STAGES_STAGE_OBSERVER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/job/view/job_view.h"
#include "stagecoach/v1/stage.pb.h"

namespace stagecoach {

// A stage of a job's placement.
struct StageTarget {
  int32_t stage = 0;  // place in the pipeline
  StagePeer peer;
};
std::vector<StageTarget> TargetsOf(const JobView& view);

class StageObserver {
 public:
  virtual ~StageObserver() = default;
  virtual void GetStatus(const StagePeer& stage, double deadline_seconds,
                         std::function<void(absl::StatusOr<v1::GetStatusResponse>)> done) = 0;
  virtual void GetTrace(const StagePeer& stage, const v1::GetStageTraceRequest& request,
                        double deadline_seconds,
                        std::function<void(absl::StatusOr<v1::GetStageTraceResponse>)> done) = 0;
  virtual void GetLogs(const StagePeer& stage, const v1::GetStageLogsRequest& request,
                       double deadline_seconds,
                       std::function<void(absl::StatusOr<v1::GetStageLogsResponse>)> done) = 0;
};

// Why a stage's part is missing, for viewers: "stage-1 cannot be reached".
std::string WhyMissing(const std::string& name, const absl::Status& status);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_STAGES_STAGE_OBSERVER_H_
