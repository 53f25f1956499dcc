// Metrics: sources of values, read at every scrape, and their text form for Prometheus.
// Ownership: the registry borrows what its sources capture; sources are added before the HTTP
//            server starts and never removed.
// Threads:   Render from any thread, one at a time by a mutex; Histogram is thread-safe.
// See: docs/metrics.md; services/common/observe/metric_names.h.
#ifndef STAGECOACH_SERVICES_COMMON_OBSERVE_METRICS_H_
#define STAGECOACH_SERVICES_COMMON_OBSERVE_METRICS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "services/common/observe/metric_names.h"

namespace stagecoach {

// Counts of observations by upper bound. Threads: thread-safe.
class Histogram {
 public:
  struct Snapshot {
    std::vector<double> bounds;
    std::vector<uint64_t> cumulative;  // one per bound; `count` is the +Inf bucket
    uint64_t count = 0;
    double sum = 0;
  };

  explicit Histogram(std::vector<double> bounds);  // ascending
  void Observe(double value);
  Snapshot snapshot() const;

  static std::vector<double> RpcBounds();       // 1 ms to 10 s, as in Prometheus' client libraries
  static std::vector<double> DoublingBounds();  // 1 ms * 2^n up to 16.384 s

 private:
  const std::vector<double> bounds_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  double sum_ = 0;
};

// MetricWriter: collects the values of one scrape. Label values stand in the definition's order.
class MetricWriter {
 public:
  MetricWriter();
  ~MetricWriter();
  void Add(const MetricDefinition& definition, const std::vector<std::string>& label_values,
           double value);
  void Add(const MetricDefinition& definition, const std::vector<std::string>& label_values,
           const Histogram::Snapshot& histogram);
  std::string Text() const;                // exposition format 0.0.4
  std::vector<std::string> Names() const;  // of the families written so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class MetricsRegistry {
 public:
  using Source = std::function<void(MetricWriter&)>;
  void AddSource(Source source);
  std::string Render();

 private:
  std::mutex mutex_;  // one scrape at a time
  std::vector<Source> sources_;
};

// build_info and the standard process_ metrics. device: "cpu", ..., or "" on a coordinator.
void WriteProcessMetrics(const std::string& device, MetricWriter& writer);

const char* BuildRevision();

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_OBSERVE_METRICS_H_
