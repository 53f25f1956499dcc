#include "services/common/observe/metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/errors/check.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"

namespace stagecoach {
namespace {

prometheus::MetricType PrometheusType(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricType::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total_pages = 0, resident_pages = 0;
  file >> total_pages >> resident_pages;
  return static_cast<double>(resident_pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double OpenDescriptors() {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  int entries = 0;
  while (readdir(folder) != nullptr) ++entries;
  closedir(folder);
  return entries - 3;  // ".", ".." and the folder's own descriptor
}

// Start time: field 22 of /proc/self/stat counts clock ticks since boot; btime is the boot's time.
double StartUnixSeconds() {
  std::ifstream stat("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), std::istreambuf_iterator<char>());
  const size_t after_name = text.rfind(')');
  if (after_name == std::string::npos) return 0;
  std::istringstream fields(text.substr(after_name + 1));
  std::string field;
  for (int i = 3; i <= 22 && fields >> field; ++i) {
  }
  const double ticks = std::strtod(field.c_str(), nullptr);
  std::ifstream boot("/proc/stat");
  std::string line;
  while (std::getline(boot, line)) {
    if (line.rfind("btime ", 0) == 0) {
      return std::strtod(line.c_str() + 6, nullptr) +
             ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
    }
  }
  return 0;
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size(), 0) {
  CHECK(std::is_sorted(bounds_.begin(), bounds_.end())) << "bounds ascend";
}

void Histogram::Observe(double value) {
  const size_t bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  std::lock_guard<std::mutex> lock(mutex_);
  if (bucket < counts_.size()) ++counts_[bucket];
  ++count_;
  sum_ += value;
}

Histogram::Snapshot Histogram::snapshot() const {
  std::lock_guard<std::mutex> lock(mutex_);
  Snapshot snapshot{bounds_, counts_, count_, sum_};
  uint64_t total = 0;
  for (uint64_t& count : snapshot.cumulative) count = total += count;
  return snapshot;
}

std::vector<double> Histogram::RpcBounds() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
}

std::vector<double> Histogram::DoublingBounds() {
  std::vector<double> bounds;
  for (int n = 0; n <= 14; ++n) bounds.push_back(0.001 * (1 << n));
  return bounds;
}

struct MetricWriter::State {
  std::vector<prometheus::MetricFamily> families;

  prometheus::ClientMetric& NewMetric(const MetricDefinition& definition,
                                      const std::vector<std::string>& label_values) {
    auto family = std::find_if(families.begin(), families.end(), [&](const auto& candidate) {
      return candidate.name == definition.name;
    });
    if (family == families.end()) {
      families.push_back({definition.name, definition.help, PrometheusType(definition.type), {}});
      family = families.end() - 1;
    }
    prometheus::ClientMetric metric;
    std::vector<std::string> names;
    if (definition.labels[0] != '\0') names = absl::StrSplit(definition.labels, ',');
    CHECK_EQ(names.size(), label_values.size()) << "labels of " << definition.name;
    for (size_t i = 0; i < names.size(); ++i) metric.label.push_back({names[i], label_values[i]});
    family->metric.push_back(std::move(metric));
    return family->metric.back();
  }
};

MetricWriter::MetricWriter() : state_(std::make_unique<State>()) {}
MetricWriter::~MetricWriter() = default;

void MetricWriter::Add(const MetricDefinition& definition,
                       const std::vector<std::string>& label_values, double value) {
  CHECK(definition.type != MetricType::kHistogram) << definition.name << " is a histogram";
  prometheus::ClientMetric& metric = state_->NewMetric(definition, label_values);
  metric.counter.value = value;
  metric.gauge.value = value;
}

void MetricWriter::Add(const MetricDefinition& definition,
                       const std::vector<std::string>& label_values,
                       const Histogram::Snapshot& histogram) {
  CHECK(definition.type == MetricType::kHistogram) << definition.name << " is not a histogram";
  prometheus::ClientMetric& metric = state_->NewMetric(definition, label_values);
  metric.histogram.sample_count = histogram.count;
  metric.histogram.sample_sum = histogram.sum;
  for (size_t i = 0; i < histogram.bounds.size(); ++i) {
    metric.histogram.bucket.push_back({histogram.cumulative[i], histogram.bounds[i]});
  }
}

std::string MetricWriter::Text() const {
  std::ostringstream stream;
  prometheus::TextSerializer().Serialize(stream, state_->families);
  return stream.str();
}

std::vector<std::string> MetricWriter::Names() const {
  std::vector<std::string> names;
  for (const auto& family : state_->families) names.push_back(family.name);
  return names;
}

void MetricsRegistry::AddSource(Source source) {
  std::lock_guard<std::mutex> lock(mutex_);
  sources_.push_back(std::move(source));
}

std::string MetricsRegistry::Render() {
  std::lock_guard<std::mutex> lock(mutex_);
  MetricWriter writer;
  for (const Source& source : sources_) source(writer);
  return writer.Text();
}

const char* BuildRevision() { return STAGECOACH_REVISION; }

void WriteProcessMetrics(const std::string& device, MetricWriter& writer) {
  static const double start_unix_seconds = StartUnixSeconds();
  writer.Add(metric::kBuildInfo, {STAGECOACH_VERSION, BuildRevision(), device}, 1);
  writer.Add(metric::kProcessCpu, {}, CpuSeconds());
  writer.Add(metric::kProcessMemory, {}, ResidentBytes());
  writer.Add(metric::kProcessFds, {}, OpenDescriptors());
  writer.Add(metric::kProcessStart, {}, start_unix_seconds);
}

}  // namespace stagecoach
