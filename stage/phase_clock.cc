#include "stage/phase_clock.h"

#include <algorithm>

#include "base/check.h"

namespace stagecoach {

PhaseClock::PhaseClock(const Clock* clock, PhaseObserver* observer)
    : clock_(clock), observer_(observer), since_nanos_(clock->MonotonicNanos()) {}

PhaseClock::Nanos PhaseClock::EnterSince(Phase phase, MicroBatchId micro_batch, int64_t nanos) {
  CHECK(nanos >= 0) << "a phase does not begin in the future";
  PhaseInterval ended;
  Nanos totals;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const int64_t begin = std::max(since_nanos_, clock_->MonotonicNanos() - nanos);
    ended = {phase_, micro_batch_, since_nanos_, begin};
    nanos_[static_cast<int>(phase_)] += begin - since_nanos_;
    phase_ = phase;
    micro_batch_ = micro_batch;
    since_nanos_ = begin;
    totals = nanos_;
  }
  if (observer_ != nullptr) observer_->OnInterval(ended);
  return totals;
}

void PhaseClock::Stay(Phase phase, MicroBatchId micro_batch) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (phase_ == phase && micro_batch_ == micro_batch) return;
  }
  Enter(phase, micro_batch);
}

Phase PhaseClock::current() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return phase_;
}

PhaseClock::Nanos PhaseClock::TotalNanos() const {
  std::lock_guard<std::mutex> lock(mutex_);
  Nanos totals = nanos_;
  totals[static_cast<int>(phase_)] += clock_->MonotonicNanos() - since_nanos_;
  return totals;
}

PhaseSeconds PhaseClock::Totals() const { return ToSeconds(TotalNanos()); }

PhaseSeconds ToSeconds(const PhaseClock::Nanos& nanos) {
  PhaseSeconds result;
  for (int i = 0; i < kPhases; ++i) result.seconds[i] = static_cast<double>(nanos[i]) * 1e-9;
  return result;
}

}  // namespace stagecoach
