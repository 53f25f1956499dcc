// PhaseClock: puts every wall-clock second of a stage into exactly one phase. So the phases add up
// to the time since construction. An observer gets every interval that has ended. So traces and
// totals cannot disagree.
// Ownership: borrows clock and observer.
// Threads:   Enter, EnterSince, Stay, Defer and Resolve on the executor thread, where the observer
//            is called, under no lock; the rest from any thread.
// Units:     nanoseconds of the monotonic clock; seconds in PhaseSeconds.
#ifndef STAGECOACH_STAGE_WATCH_PHASE_CLOCK_H_
#define STAGECOACH_STAGE_WATCH_PHASE_CLOCK_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/threads/clock.h"
#include "plan/phase.h"

namespace stagecoach {

struct PhaseInterval {
  Phase phase = Phase::kIdle;
  MicroBatchId micro_batch;  // invalid: of none
  int64_t begin_nanos = 0, end_nanos = 0;
  CellId cell;  // invalid: of none, or the stage has no other
};

class PhaseObserver {
 public:
  virtual ~PhaseObserver() = default;
  // Intervals come in order and without a gap; must not block.
  virtual void OnInterval(const PhaseInterval& interval) = 0;
};

// The host's phases, replaced by the device's while the device computed. host: without a gap.
// device: ascending and disjoint, by the same clock. The result covers the same time as `host`.
std::vector<PhaseInterval> Overlay(std::span<const PhaseInterval> host,
                                   std::span<const PhaseInterval> device);

class PhaseClock {
 public:
  explicit PhaseClock(const Clock* clock, PhaseObserver* observer = nullptr);  // starts in kIdle
  using Nanos = std::array<int64_t, kPhases>;
  // The time until now belonged to the phase before. Returns the totals at that moment.
  Nanos Enter(Phase phase, MicroBatchId micro_batch = MicroBatchId(), CellId cell = CellId()) {
    return EnterSince(phase, micro_batch, 0, cell);
  }
  // As Enter, but the last `nanos` already belong to the new phase, at most since the last Enter.
  // So a wait is booked as bubble, and is split once the message with its send time is there.
  Nanos EnterSince(Phase phase, MicroBatchId micro_batch, int64_t nanos, CellId cell = CellId());
  // As Enter, but a no-op in the same phase, micro-batch and cell: for retries.
  void Stay(Phase phase, MicroBatchId micro_batch, CellId cell = CellId());
  // For a device that runs behind the host. From now on intervals are kept and not booked, until
  // Resolve gets the device's intervals. If there are none, Resolve books the host's phases.
  // Without Defer, Resolve does nothing.
  void Defer();
  void Resolve(std::span<const PhaseInterval> device);
  bool deferring() const { return deferring_; }  // executor thread
  Phase current() const;
  Nanos TotalNanos() const;     // up to now, the current phase included; up to Defer, if deferring
  PhaseSeconds Totals() const;  // the same in seconds

 private:
  const Clock* const clock_;
  PhaseObserver* const observer_;
  mutable std::mutex mutex_;  // guards the members below
  Phase phase_ = Phase::kIdle;
  MicroBatchId micro_batch_;
  CellId cell_;
  int64_t since_nanos_;
  Nanos nanos_{};
  bool deferring_ = false;
  std::vector<PhaseInterval> deferred_;
};

PhaseSeconds ToSeconds(const PhaseClock::Nanos& nanos);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_WATCH_PHASE_CLOCK_H_
