// PhaseClock: puts every wall-clock second of a stage into exactly one phase, so the phases add up
// to the time since construction. Threads:   Enter and Move on the executor thread; Totals from any
// thread. Units:     nanoseconds of the monotonic clock; seconds in PhaseSeconds.
#ifndef STAGECOACH_STAGE_PHASE_CLOCK_H_
#define STAGECOACH_STAGE_PHASE_CLOCK_H_

#include <array>
#include <cstdint>
#include <mutex>

#include "base/clock.h"
#include "plan/phase.h"

namespace stagecoach {

class PhaseClock {
 public:
  explicit PhaseClock(const Clock* clock);  // starts in kIdle
  void Enter(Phase phase);                  // the time until now belonged to the phase before
  Phase current() const;
  // Moves up to `nanos` of what was booked on `from` since the last Enter(from) to `to`: a wait is
  // booked as bubble and split once the message with its send time is there.
  void Move(Phase from, Phase to, int64_t nanos);
  std::array<int64_t, kPhases> TotalNanos() const;  // up to now, the current phase included
  PhaseSeconds Totals() const;                      // the same in seconds

 private:
  void BookLocked();  // the time until now belongs to phase_

  const Clock* const clock_;
  mutable std::mutex mutex_;  // guards what follows
  Phase phase_ = Phase::kIdle;
  int64_t since_nanos_;
  std::array<int64_t, kPhases> nanos_{};
  std::array<int64_t, kPhases> movable_{};  // of nanos_: booked since the last Enter of that phase
};

PhaseSeconds ToSeconds(const std::array<int64_t, kPhases>& nanos);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_PHASE_CLOCK_H_
