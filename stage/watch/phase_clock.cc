#include "stage/watch/phase_clock.h"

#include <algorithm>

#include "base/errors/check.h"

namespace stagecoach {

PhaseClock::PhaseClock(const Clock* clock, PhaseObserver* observer)
    : clock_(clock), observer_(observer), since_nanos_(clock->MonotonicNanos()) {}

PhaseClock::Nanos PhaseClock::EnterSince(Phase phase, MicroBatchId micro_batch, int64_t nanos,
                                         CellId cell) {
  CHECK(nanos >= 0) << "a phase does not begin in the future";
  PhaseInterval ended;
  Nanos totals;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const int64_t begin = std::max(since_nanos_, clock_->MonotonicNanos() - nanos);
    ended = {phase_, micro_batch_, since_nanos_, begin, cell_};
    if (deferring_) {
      deferred_.push_back(ended);
    } else {
      nanos_[static_cast<int>(phase_)] += begin - since_nanos_;
    }
    phase_ = phase;
    micro_batch_ = micro_batch;
    cell_ = cell;
    since_nanos_ = begin;
    totals = nanos_;
    if (deferring_) return totals;
  }
  if (observer_ != nullptr) observer_->OnInterval(ended);
  return totals;
}

void PhaseClock::Defer() {
  Enter(current());
  std::lock_guard<std::mutex> lock(mutex_);
  deferring_ = true;
}

void PhaseClock::Resolve(std::span<const PhaseInterval> device) {
  if (!deferring_) return;
  EnterSince(phase_, micro_batch_, 0, cell_);
  std::vector<PhaseInterval> booked;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    booked = Overlay(deferred_, device);
    for (const PhaseInterval& interval : booked) {
      nanos_[static_cast<int>(interval.phase)] += interval.end_nanos - interval.begin_nanos;
    }
    deferred_.clear();
    deferring_ = false;
  }
  if (observer_ == nullptr) return;
  for (const PhaseInterval& interval : booked) observer_->OnInterval(interval);
}

std::vector<PhaseInterval> Overlay(std::span<const PhaseInterval> host,
                                   std::span<const PhaseInterval> device) {
  std::vector<PhaseInterval> result;
  const auto add = [&result](PhaseInterval interval, int64_t begin, int64_t end) {
    if (begin >= end) return;
    interval.begin_nanos = begin;
    interval.end_nanos = end;
    result.push_back(interval);
  };
  size_t next = 0;  // of the device
  for (const PhaseInterval& interval : host) {
    int64_t at = interval.begin_nanos;
    while (at < interval.end_nanos) {
      while (next < device.size() && device[next].end_nanos <= at) ++next;
      const bool more = next < device.size() && device[next].begin_nanos < interval.end_nanos;
      const int64_t computes = more ? std::max(at, device[next].begin_nanos) : interval.end_nanos;
      add(interval, at, computes);
      at = computes;
      if (!more) break;
      const int64_t end = std::min(interval.end_nanos, device[next].end_nanos);
      add(device[next], at, end);
      at = end;
    }
  }
  return result;
}

void PhaseClock::Stay(Phase phase, MicroBatchId micro_batch, CellId cell) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (phase_ == phase && micro_batch_ == micro_batch && cell_ == cell) return;
  }
  Enter(phase, micro_batch, cell);
}

Phase PhaseClock::current() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return phase_;
}

PhaseClock::Nanos PhaseClock::TotalNanos() const {
  std::lock_guard<std::mutex> lock(mutex_);
  Nanos totals = nanos_;
  if (deferring_) return totals;
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
