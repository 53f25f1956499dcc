// Metrics of a stage server, read from the runtime's snapshot at every scrape.
#ifndef STAGECOACH_SERVICES_STAGE_STAGE_METRICS_H_
#define STAGECOACH_SERVICES_STAGE_STAGE_METRICS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "services/common/observe/metrics.h"
#include "services/stage/nvml.h"
#include "stage/link/grpc/link_core.h"
#include "stage/runtime/stage_runtime.h"

namespace stagecoach {

// Totals with a neighbour over all links of this process, so that counters do not fall when a
// recovery opens new ones. `status` has the messages in flight.
struct NeighbourLink {
  const char* peer;  // "upstream" or "downstream"
  const LinkTotals* totals;
  const Histogram* transfer;  // of messages from there
};

// MicroBatchTimes: how long the stage computed on micro-batches. Threads: thread-safe.
class MicroBatchTimes {
 public:
  static constexpr std::array kCounted = {Phase::kForward, Phase::kRecompute, Phase::kBackward};

  MicroBatchTimes();
  void Observe(Phase phase, double seconds);  // other phases are not counted
  void Write(const std::string& stage_name, MetricWriter& writer) const;

 private:
  std::array<std::unique_ptr<Histogram>, kCounted.size()> histograms_;
};

void WriteStageMetrics(const std::string& stage_name, const StageStatus& status,
                       MetricWriter& writer);
// Leaves unknown values out.
void WriteDeviceMetrics(const std::string& stage_name, const DeviceReading& reading,
                        MetricWriter& writer);
// Of data sets (services/common/data_sets/data_cache.h).
void WriteDataMetrics(const std::string& stage_name, int64_t fetched_bytes, int64_t cached_bytes,
                      MetricWriter& writer);
void WriteLinkMetrics(const std::string& stage_name, const NeighbourLink& neighbour,
                      const std::optional<LinkStatistics>& link, MetricWriter& writer);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_STAGE_METRICS_H_
