#include "services/stage/stage_metrics.h"

#include "services/common/observe/metric_names.h"

namespace stagecoach {

MicroBatchTimes::MicroBatchTimes() {
  for (auto& histogram : histograms_) {
    histogram = std::make_unique<Histogram>(Histogram::DoublingBounds());
  }
}

void MicroBatchTimes::Observe(Phase phase, double seconds) {
  for (size_t i = 0; i < kCounted.size(); ++i) {
    if (kCounted[i] == phase) histograms_[i]->Observe(seconds);
  }
}

void MicroBatchTimes::Write(const std::string& stage_name, MetricWriter& writer) const {
  for (size_t i = 0; i < kCounted.size(); ++i) {
    const Histogram::Snapshot times = histograms_[i]->snapshot();
    const std::string phase = PhaseName(kCounted[i]);
    writer.Add(metric::kStageMicroBatches, {stage_name, phase}, static_cast<double>(times.count));
    writer.Add(metric::kStageMicroBatchSeconds, {stage_name, phase}, times);
  }
}

void WriteLinkMetrics(const std::string& stage_name, const NeighbourLink& neighbour,
                      const std::optional<LinkStatistics>& link, MetricWriter& writer) {
  // Gradients flow up, activations down.
  const bool up = std::string(neighbour.peer) == "upstream";
  const std::string peer = neighbour.peer;
  const LinkTotals& totals = *neighbour.totals;
  writer.Add(metric::kLinkSent, {stage_name, peer, up ? "gradient" : "activation"},
             static_cast<double>(totals.sent_bytes.load()));
  writer.Add(metric::kLinkReceived, {stage_name, peer, up ? "activation" : "gradient"},
             static_cast<double>(totals.received_bytes.load()));
  writer.Add(metric::kLinkTransfer, {stage_name, peer}, neighbour.transfer->snapshot());
  writer.Add(metric::kLinkInflight, {stage_name, peer},
             link.has_value() ? static_cast<double>(link->inflight_messages) : 0);
  writer.Add(metric::kLinkReconnects, {stage_name, peer}, static_cast<double>(totals.reconnects.load()));
  writer.Add(metric::kLinkRepeats, {stage_name, peer}, static_cast<double>(totals.repeats.load()));
}

void WriteDataMetrics(const std::string& stage_name, int64_t fetched_bytes, int64_t cached_bytes,
                      MetricWriter& writer) {
  writer.Add(metric::kDataFetched, {stage_name}, static_cast<double>(fetched_bytes));
  writer.Add(metric::kDataCached, {stage_name}, static_cast<double>(cached_bytes));
}

void WriteDeviceMetrics(const std::string& stage_name, const DeviceReading& reading,
                        MetricWriter& writer) {
  const auto add = [&](const MetricDefinition& definition, const std::optional<double>& value) {
    if (value.has_value()) writer.Add(definition, {stage_name}, *value);
  };
  add(metric::kDeviceUtilization, reading.utilization);
  add(metric::kDevicePower, reading.power_watts);
  add(metric::kDeviceTemperature, reading.temperature_celsius);
  add(metric::kDeviceMemoryUsed, reading.memory_used_bytes);
  add(metric::kDeviceMemory, reading.memory_size_bytes);
}

void WriteStageMetrics(const std::string& stage_name, const StageStatus& status,
                       MetricWriter& writer) {
  for (int phase = 0; phase < kPhases; ++phase) {
    writer.Add(metric::kStageTime, {stage_name, "0", PhaseName(static_cast<Phase>(phase))},
               status.phases.seconds[phase]);
  }
  for (int kind = 0; kind < kMemoryKinds; ++kind) {
    const std::string name = MemoryKindName(static_cast<MemoryKind>(kind));
    writer.Add(metric::kStageMemory, {stage_name, name},
               static_cast<double>(status.memory.current[kind]));
    writer.Add(metric::kStageMemoryPeak, {stage_name, name},
               static_cast<double>(status.memory.peak[kind]));
  }
  writer.Add(metric::kStageMemoryLimit, {stage_name}, static_cast<double>(status.memory.limit));
  writer.Add(metric::kStageSnapshots, {stage_name}, static_cast<double>(status.snapshot_bytes));
  writer.Add(metric::kStageBadRecords, {stage_name}, static_cast<double>(status.bad_records));
}

}  // namespace stagecoach
