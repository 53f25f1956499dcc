// StageTotals: what a stage tells about itself with every heartbeat, for show: the plain form of
// StageTelemetry in proto/stagecoach/v1/telemetry.proto. No decision depends on it.
// Units: seconds and bytes; totals since the start of the stage's process.
#ifndef STAGECOACH_COORDINATOR_FLEET_STAGE_TOTALS_H_
#define STAGECOACH_COORDINATOR_FLEET_STAGE_TOTALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plan/costs/cost_model.h"
#include "plan/phase.h"

namespace stagecoach {

struct NeighbourTotals {
  std::string peer;  // "upstream" or "downstream"
  int64_t sent_bytes = 0, received_bytes = 0;
  int64_t inflight_messages = 0;  // sent and not yet taken by the neighbour's executor
  int64_t reconnects = 0;
  double transfer_p95_seconds = 0;
};

struct StageTotals {
  PhaseSeconds phases;
  StageMemory memory, memory_peak;
  int64_t memory_limit_bytes = 0;           // 0: no limit
  std::vector<NeighbourTotals> neighbours;  // at most kMaxNeighbours
  double uptime_seconds = 0;
  static constexpr int kMaxNeighbours = 2;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_FLEET_STAGE_TOTALS_H_
