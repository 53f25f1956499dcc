// ManualClock: moves only when a test says so.
// Threads: thread-safe. Units: nanoseconds.
#ifndef STAGECOACH_BASE_TESTING_MANUAL_CLOCK_H_
#define STAGECOACH_BASE_TESTING_MANUAL_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "base/threads/clock.h"

namespace stagecoach {

class ManualClock final : public Clock {
 public:
  explicit ManualClock(int64_t start_nanos = 0) : nanos_(start_nanos) {}
  int64_t MonotonicNanos() const override { return nanos_.load(); }
  int64_t UnixNanos() const override { return nanos_.load(); }
  void AdvanceNanos(int64_t nanos) { nanos_ += nanos; }

 private:
  std::atomic<int64_t> nanos_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_TESTING_MANUAL_CLOCK_H_
