// Progress: signs that a thread advances in its work, finer than any answer. A sign is a block of
// an operation, a layer, a piece of a file. By signs the waiting side tells slow work from stuck
// work. Only a change of the number counts, not its value.
//
// Code at work calls TickProgress() and knows no reader. Its thread chooses the counter, so no back
// end, layer or file needs one.
// Ownership: a scope borrows its counter.
// Threads:   ProgressCounter: any. TickProgress counts for the scope of the calling thread; without
//            one it does nothing. Scopes of a thread nest.
// Cost:      a few nanoseconds; nothing is ordered by it.
#ifndef STAGECOACH_BASE_THREADS_PROGRESS_H_
#define STAGECOACH_BASE_THREADS_PROGRESS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/threads/clock.h"

namespace stagecoach {

class ProgressCounter {
 public:
  void Tick() { count_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> count_{0};
};

// While it lives, TickProgress on this thread counts into `counter`.
class ProgressScope {
 public:
  explicit ProgressScope(ProgressCounter* counter);
  ~ProgressScope();
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;

 private:
  ProgressCounter* const outer_;
};

void TickProgress();

// Long work on bytes goes by pieces of this size, with a tick after each.
inline constexpr size_t kProgressPieceBytes = size_t{4} << 20;

// Measures for how long a number has stood still.
class StallTimer {
 public:
  explicit StallTimer(const Clock* clock) : clock_(clock), since_(clock->MonotonicNanos()) {}
  // Starts anew when `count` is not the one of the last call.
  int64_t StillNanos(uint64_t count) {
    const int64_t now = clock_->MonotonicNanos();
    if (count != count_) since_ = now;
    count_ = count;
    return now - since_;
  }

 private:
  const Clock* clock_;
  int64_t since_;
  uint64_t count_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_THREADS_PROGRESS_H_
