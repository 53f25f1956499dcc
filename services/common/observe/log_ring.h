// LogRing: the last lines of a process's log, for readers over the network.
// Ownership: values.  Threads: thread-safe; Append takes a short mutex and copies one line.
// Units:     a line's number grows by one from 1. Text is as base/utf8.h shows it, cut at
//            kLongestLogLine bytes. So the ring is bounded in bytes too.
// See: proto/stagecoach/v1/telemetry.proto, LogLine.
#ifndef STAGECOACH_SERVICES_COMMON_OBSERVE_LOG_RING_H_
#define STAGECOACH_SERVICES_COMMON_OBSERVE_LOG_RING_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "stagecoach/v1/telemetry.pb.h"

namespace stagecoach {

inline constexpr size_t kLongestLogLine = 2048;

struct LogEntry {
  uint64_t number = 0;  // set by the ring
  double unix_seconds = 0;
  std::string level;  // debug, info, warning, error
  std::string message;
  std::string job_id;  // empty: none
  std::optional<uint64_t> step;
};

class LogRing {
 public:
  explicit LogRing(size_t lines);

  struct Page {
    std::vector<LogEntry> lines;  // ascending
    uint64_t newest = 0;          // newest line looked at: `after` of the next Read
  };

  void Append(LogEntry entry);
  // Lines with a higher number than `after`, of this job or of none (job empty: all). Returns the
  // newest `limit` of these (0: all). If `newest` is below `after`, the process is a new one.
  // `none_until` in unix seconds: lines of no job only up to then; 0: all.
  Page Read(uint64_t after, const std::string& job, size_t limit, double none_until = 0) const;

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;     // guards what follows
  std::vector<LogEntry> lines_;  // line n is at (n - 1) % capacity
  uint64_t newest_ = 0;
};

// source: coordinator, or the stage's registered name.
v1::LogLine ToProto(const LogEntry& entry, const std::string& source);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_OBSERVE_LOG_RING_H_
