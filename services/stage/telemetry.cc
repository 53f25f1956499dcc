#include "services/stage/telemetry.h"

#include "services/common/convert/convert_control.h"
#include "stage/executor/boundary_port.h"
#include "stage/runtime/loaded_cells.h"

namespace stagecoach {
namespace {

v1::TraceTrack ToProto(TraceTrack track) {
  switch (track) {
    case TraceTrack::kCompute:
      return v1::TRACE_TRACK_COMPUTE;
    case TraceTrack::kSend:
      return v1::TRACE_TRACK_SEND;
    case TraceTrack::kReceive:
      return v1::TRACE_TRACK_RECEIVE;
  }
  return v1::TRACE_TRACK_UNSPECIFIED;
}

}  // namespace

double Quantile(const Histogram::Snapshot& histogram, double q) {
  if (histogram.count == 0) return 0;
  const double rank = q * static_cast<double>(histogram.count);
  double below = 0, lower = 0;
  for (size_t i = 0; i < histogram.bounds.size(); ++i) {
    const double upto = static_cast<double>(histogram.cumulative[i]);
    if (upto >= rank && upto > below) {
      return lower + (histogram.bounds[i] - lower) * (rank - below) / (upto - below);
    }
    below = upto;
    lower = histogram.bounds[i];
  }
  return lower;
}

v1::StageTelemetry ToProto(const StageStatus& status) {
  v1::StageTelemetry telemetry;
  *telemetry.mutable_phases() = ToProto(status.phases);
  *telemetry.mutable_memory() = ToProto(CurrentMemory(status.memory));
  *telemetry.mutable_memory_peak() = ToProto(PeakMemory(status.memory));
  telemetry.set_memory_limit_bytes(status.memory.limit);
  return telemetry;
}

v1::LinkTelemetry ToProto(const NeighbourLink& neighbour, const LinkStatistics& link) {
  v1::LinkTelemetry proto;
  proto.set_peer(neighbour.peer);
  proto.set_sent_bytes(static_cast<int64_t>(neighbour.totals->sent_bytes.load()));
  proto.set_received_bytes(static_cast<int64_t>(neighbour.totals->received_bytes.load()));
  proto.set_inflight_messages(static_cast<int64_t>(link.inflight_messages));
  proto.set_reconnects(static_cast<int64_t>(neighbour.totals->reconnects.load()));
  proto.set_transfer_p95_seconds(Quantile(neighbour.transfer->snapshot(), 0.95));
  return proto;
}

v1::TraceSpan ToProto(const TraceSpan& span) {
  v1::TraceSpan proto;
  const bool compute = span.track == TraceTrack::kCompute;
  proto.set_name(compute ? PhaseName(span.phase) : MessageKindName(span.kind));
  proto.set_track(ToProto(span.track));
  proto.set_step(span.step);
  proto.set_attempt(span.attempt);
  proto.set_micro_batch(span.micro_batch.value);
  proto.set_begin_unix_nanos(span.begin_unix_nanos);
  proto.set_end_unix_nanos(span.end_unix_nanos);
  proto.set_bytes(span.bytes);
  if (span.cell.valid()) proto.set_cell(span.cell.value);
  if (!compute) proto.set_peer(span.upstream ? "upstream" : "downstream");
  return proto;
}

}  // namespace stagecoach
