// VirtualTime: what happens in a simulated world, in order: a queue of events on a clock that jumps
// from one to the next. Nothing else moves the clock, and no thread waits. Events of one moment
// happen in the order in which they were asked for.
// Ownership: owns the events that wait; what they borrow must outlive it or be gone through a weak
//            pointer.
// Threads:   one.
// Units:     nanoseconds, or seconds where it says so, of virtual time since the world began.
#ifndef STAGECOACH_TESTS_SIMULATION_HOST_VIRTUAL_TIME_H_
#define STAGECOACH_TESTS_SIMULATION_HOST_VIRTUAL_TIME_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/testing/manual_clock.h"
#include "base/threads/clock.h"

namespace stagecoach {

class VirtualTime {
 public:
  using Work = std::function<void()>;

  int64_t nanos() const { return clock_.MonotonicNanos(); }
  double seconds() const { return clock_.MonotonicSeconds(); }
  uint64_t events() const { return happened_; }

  void At(int64_t nanos, Work work) {
    waiting_.push_back({std::max(nanos, this->nanos()), asked_++, std::move(work)});
    std::push_heap(waiting_.begin(), waiting_.end(), Later);
  }
  // Rounded up: what is due at a moment is due when its event comes.
  void After(double seconds, Work work) { At(nanos() + Nanos(seconds), std::move(work)); }
  static int64_t Nanos(double seconds) { return static_cast<int64_t>(std::ceil(seconds * 1e9)); }

  // The next event; false: there is none.
  bool Step() {
    if (waiting_.empty()) return false;
    std::pop_heap(waiting_.begin(), waiting_.end(), Later);
    Event event = std::move(waiting_.back());
    waiting_.pop_back();
    clock_.AdvanceNanos(event.nanos - nanos());
    ++happened_;
    event.work();
    return true;
  }

 private:
  struct Event {
    int64_t nanos = 0;
    uint64_t number = 0;
    Work work;
  };
  static bool Later(const Event& a, const Event& b) {
    return a.nanos != b.nanos ? a.nanos > b.nanos : a.number > b.number;
  }

  ManualClock clock_;
  std::vector<Event> waiting_;  // a heap, the next one in front
  uint64_t asked_ = 0, happened_ = 0;
};

// HostClock: what a machine's clocks say: the monotonic one is the world's, the wall clock is off
// by what was set, and jumps. Nothing that is decided may depend on it.
class HostClock final : public Clock {
 public:
  explicit HostClock(const VirtualTime* time) : time_(time) {}
  int64_t MonotonicNanos() const override { return time_->nanos(); }
  int64_t UnixNanos() const override { return kBegin + time_->nanos() + ahead_nanos_; }
  void Jump(double seconds) { ahead_nanos_ += static_cast<int64_t>(seconds * 1e9); }

 private:
  static constexpr int64_t kBegin = int64_t{1'750'000'000} * 1'000'000'000;
  const VirtualTime* const time_;
  int64_t ahead_nanos_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_HOST_VIRTUAL_TIME_H_
