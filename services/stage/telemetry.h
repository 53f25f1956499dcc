// Telemetry: a stage's reports about itself in wire form: totals with every heartbeat, and spans of
// its trace.
#ifndef STAGECOACH_SERVICES_STAGE_TELEMETRY_H_
#define STAGECOACH_SERVICES_STAGE_TELEMETRY_H_

#include <cstdint>

#include "services/common/observe/metrics.h"
#include "services/stage/stage_metrics.h"
#include "stage/runtime/stage_runtime.h"
#include "stage/watch/trace_ring.h"
#include "stagecoach/v1/telemetry.pb.h"

namespace stagecoach {

// The q-quantile of the observations, interpolated inside its bucket as Prometheus does. It is 0
// without observations, and at most the largest bound.
double Quantile(const Histogram::Snapshot& histogram, double q);

// All but links and uptime.
v1::StageTelemetry ToProto(const StageStatus& status);
// Totals since the start of the process; messages in flight only of the current link.
v1::LinkTelemetry ToProto(const NeighbourLink& neighbour, const LinkStatistics& link);

v1::TraceSpan ToProto(const TraceSpan& span);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_TELEMETRY_H_
