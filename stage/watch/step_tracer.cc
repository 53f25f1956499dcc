#include "stage/watch/step_tracer.h"

#include <utility>

namespace stagecoach {
namespace {

bool ComputesAMicroBatch(const TraceSpan& span) {
  return span.micro_batch.valid() &&
         (span.phase == Phase::kForward || span.phase == Phase::kRecompute ||
          span.phase == Phase::kBackward);
}

}  // namespace

StepTracer::StepTracer(TraceRing* ring, const Clock* clock, OnMicroBatch on_micro_batch)
    : ring_(ring), clock_(clock), on_micro_batch_(std::move(on_micro_batch)) {}

void StepTracer::Begin(const Fence& fence, StageId stage) {
  active_ = true;
  unix_offset_nanos_ = clock_->UnixNanos() - clock_->MonotonicNanos();
  span_ = {.job = TraceJob(fence.job),
           .generation = fence.generation,
           .step = fence.step,
           .attempt = fence.attempt,
           .stage = stage};
}

void StepTracer::End() {
  if (active_) Write();
  active_ = false;
}

void StepTracer::OnInterval(const PhaseInterval& interval) {
  const bool wanted = active_ && interval.phase != Phase::kIdle;
  if (!wanted || interval.begin_nanos == interval.end_nanos) return;
  const int64_t begin = interval.begin_nanos + unix_offset_nanos_;
  const bool goes_on = span_.end_unix_nanos == begin && span_.phase == interval.phase &&
                       span_.micro_batch == interval.micro_batch && span_.cell == interval.cell;
  if (!goes_on) {
    Write();
    span_.phase = interval.phase;
    span_.micro_batch = interval.micro_batch;
    span_.cell = interval.cell;
    span_.begin_unix_nanos = begin;
  }
  span_.end_unix_nanos = interval.end_nanos + unix_offset_nanos_;
}

void StepTracer::Write() {
  if (span_.begin_unix_nanos == span_.end_unix_nanos) return;
  if (ring_ != nullptr) ring_->Add(span_);
  if (on_micro_batch_ && ComputesAMicroBatch(span_)) {
    on_micro_batch_(span_.phase,
                    static_cast<double>(span_.end_unix_nanos - span_.begin_unix_nanos) * 1e-9);
  }
  span_.begin_unix_nanos = span_.end_unix_nanos;
}

}  // namespace stagecoach
