// Clock: monotonic time for decisions, wall time for logs and file names only.
// Threads: thread-safe. ManualClock moves only when a test says so.
// Units: nanoseconds.
#ifndef STAGECOACH_BASE_CLOCK_H_
#define STAGECOACH_BASE_CLOCK_H_

#include <atomic>
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

#endif  // STAGECOACH_BASE_CLOCK_H_
