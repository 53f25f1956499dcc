// Clock: monotonic time for decisions in a run. Wall time is for logs, file names, traces, times
// compared between machines, and numbers that differ between starts (terms, job ids).
// Threads: thread-safe.
// Units: nanoseconds.
#ifndef STAGECOACH_BASE_THREADS_CLOCK_H_
#define STAGECOACH_BASE_THREADS_CLOCK_H_

#include <cstdint>

namespace stagecoach {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t MonotonicNanos() const = 0;
  virtual int64_t UnixNanos() const = 0;
  double MonotonicSeconds() const { return static_cast<double>(MonotonicNanos()) * 1e-9; }
  double UnixSeconds() const { return static_cast<double>(UnixNanos()) * 1e-9; }
};

class SystemClock final : public Clock {
 public:
  int64_t MonotonicNanos() const override;
  int64_t UnixNanos() const override;
  static SystemClock* Get();  // one immutable object for the process; never deleted
};

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_THREADS_CLOCK_H_
