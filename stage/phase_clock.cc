#include "stage/phase_clock.h"

#include <algorithm>

#include "base/check.h"

namespace stagecoach {

PhaseClock::PhaseClock(const Clock* clock) : clock_(clock), since_nanos_(clock->MonotonicNanos()) {}

void PhaseClock::BookLocked() {
  const int64_t now = clock_->MonotonicNanos();
  const int64_t elapsed = now - since_nanos_;
  nanos_[static_cast<int>(phase_)] += elapsed;
  movable_[static_cast<int>(phase_)] += elapsed;
  since_nanos_ = now;
}

void PhaseClock::Enter(Phase phase) {
  std::lock_guard<std::mutex> lock(mutex_);
  BookLocked();
  phase_ = phase;
  movable_[static_cast<int>(phase)] = 0;
}

Phase PhaseClock::current() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return phase_;
}

void PhaseClock::Move(Phase from, Phase to, int64_t nanos) {
  CHECK(nanos >= 0) << "time moves between phases, it does not run backwards";
  std::lock_guard<std::mutex> lock(mutex_);
  BookLocked();
  const int64_t moved = std::min(nanos, movable_[static_cast<int>(from)]);
  movable_[static_cast<int>(from)] -= moved;
  nanos_[static_cast<int>(from)] -= moved;
  nanos_[static_cast<int>(to)] += moved;
}

std::array<int64_t, kPhases> PhaseClock::TotalNanos() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::array<int64_t, kPhases> totals = nanos_;
  totals[static_cast<int>(phase_)] += clock_->MonotonicNanos() - since_nanos_;
  return totals;
}

PhaseSeconds PhaseClock::Totals() const { return ToSeconds(TotalNanos()); }

PhaseSeconds ToSeconds(const std::array<int64_t, kPhases>& nanos) {
  PhaseSeconds result;
  for (int i = 0; i < kPhases; ++i) result.seconds[i] = static_cast<double>(nanos[i]) * 1e-9;
  return result;
}

}  // namespace stagecoach
