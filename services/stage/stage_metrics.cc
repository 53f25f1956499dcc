#include "services/stage/stage_metrics.h"

#include "services/common/metric_names.h"

namespace stagecoach {
namespace {

void WriteLink(const std::string& stage, const std::string& peer, const std::string& sent_kind,
               const std::string& received_kind, const LinkStatistics& link, MetricWriter& writer) {
  writer.Add(metric::kLinkSent, {stage, peer, sent_kind}, static_cast<double>(link.sent_bytes));
  writer.Add(metric::kLinkReceived, {stage, peer, received_kind},
             static_cast<double>(link.received_bytes));
  writer.Add(metric::kLinkInflight, {stage, peer}, static_cast<double>(link.inflight_messages));
}

}  // namespace

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
  // Gradients flow up, activations down.
  if (status.upstream) {
    WriteLink(stage_name, "upstream", "gradient", "activation", *status.upstream, writer);
  }
  if (status.downstream) {
    WriteLink(stage_name, "downstream", "activation", "gradient", *status.downstream, writer);
  }
}

}  // namespace stagecoach
