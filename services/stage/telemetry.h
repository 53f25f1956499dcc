// Telemetry: what a stage tells about itself in wire form: totals with every heartbeat, spans of
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

// Upper end of the share q of the observations, interpolated inside its bucket as Prometheus does.
// It is 0 without observations, and the largest bound if it lies beyond that.
double Quantile(const Histogram::Snapshot& histogram, double q);

// Everything but links and uptime.
v1::StageTelemetry ToProto(const StageStatus& status);
// Totals since the start of the process; what is in flight, of the link at hand.
v1::LinkTelemetry ToProto(const NeighbourLink& neighbour, const LinkStatistics& link);

v1::TraceSpan ToProto(const TraceSpan& span);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_TELEMETRY_H_
