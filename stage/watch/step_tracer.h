// StepTracer: writes the phase clock's intervals during a command into the trace ring, as spans of
// the compute track. Neighbouring intervals of one phase, micro-batch and cell (loss and backward) become
// one span, so spans and PhaseSeconds agree to the nanosecond.
// Ownership: borrows ring and clock.
// Threads:   executor thread only.
// See: stage/watch/phase_clock.h, PhaseObserver.
#ifndef STAGECOACH_STAGE_WATCH_STEP_TRACER_H_
#define STAGECOACH_STAGE_WATCH_STEP_TRACER_H_

#include <functional>

#include "base/ids.h"
#include "base/threads/clock.h"
#include "stage/watch/phase_clock.h"
#include "stage/watch/trace_ring.h"

namespace stagecoach {

class StepTracer final : public PhaseObserver {
 public:
  // Seconds of one micro-batch's forward, recompute or backward.
  using OnMicroBatch = std::function<void(Phase phase, double seconds)>;

  // ring: may be null, on_micro_batch may be empty.
  StepTracer(TraceRing* ring, const Clock* clock, OnMicroBatch on_micro_batch);

  void Begin(const Fence& fence, StageId stage);  // intervals from now on belong to `fence`
  void End();                                     // intervals from now on are dropped
  void OnInterval(const PhaseInterval& interval) override;

 private:
  void Write();  // adds span_ to the ring

  TraceRing* const ring_;
  const Clock* const clock_;
  const OnMicroBatch on_micro_batch_;
  bool active_ = false;
  int64_t unix_offset_nanos_ = 0;  // constant in a step: its spans do not jump with the clock
  TraceSpan span_;                 // the unfinished one; empty: begin = end
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_WATCH_STEP_TRACER_H_
