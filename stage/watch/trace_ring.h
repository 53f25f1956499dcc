// TraceRing: the last spans of a stage, always on: the executor's work and waits, and its links'
// messages. New spans overwrite old ones, so memory is bounded (kTraceSpans of 88 bytes).
// Ownership: values; a span knows its job by a hash of the id.
// Threads:   thread-safe. Add locks a mutex for a moment; Read copies a few hundred spans at a time
//            under it, so a reader holds up a writer for microseconds only. Add takes about 10 ns,
//            or 50 ns beside a reader that never stops (trace-bench).
// Units:     Unix nanoseconds of this machine; bytes of payload.
// See: proto/stagecoach/v1/telemetry.proto, TraceSpan; stage/watch/step_tracer.h.
#ifndef STAGECOACH_STAGE_WATCH_TRACE_RING_H_
#define STAGECOACH_STAGE_WATCH_TRACE_RING_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/ids.h"
#include "plan/phase.h"
#include "stage/link/link.h"

namespace stagecoach {

inline constexpr size_t kTraceSpans = 32768;

enum class TraceTrack : uint8_t { kCompute, kSend, kReceive };

struct TraceSpan {
  uint64_t job = 0;  // TraceJob of its id
  uint64_t generation = 0;
  uint64_t step = 0;
  int64_t begin_unix_nanos = 0, end_unix_nanos = 0;
  int64_t bytes = 0;  // send and receive
  uint32_t attempt = 0;
  StageId stage;             // compute: the stage's place in the pipeline
  MicroBatchId micro_batch;  // invalid: of none
  TraceTrack track = TraceTrack::kCompute;
  Phase phase = Phase::kIdle;                   // compute
  MessageKind kind = MessageKind::kActivation;  // send and receive
  bool upstream = false;                        // send and receive: the upstream neighbour
  CellId cell;  // compute: invalid if the stage has no other; else the one above the edge
};

uint64_t TraceJob(const std::string& job_id);

// The span of a message on a link. Send: from TrySend to the end of the write of its last byte.
// Receive: from the neighbour's TrySend, by the neighbour's clock, to complete arrival here.
TraceSpan TransferSpan(const LinkTransfer& transfer);

class TraceRing {
 public:
  explicit TraceRing(size_t spans = kTraceSpans);

  void Add(const TraceSpan& span);
  // Spans of the job's last `steps` steps (0: of all that are held), in order of their end. Retries
  // of a step and evaluations count as part of it. A step that was repeated after a recovery counts
  // again.
  std::vector<TraceSpan> Read(const std::string& job_id, uint32_t steps) const;

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;      // guards the members below
  std::vector<TraceSpan> spans_;  // the n-th span ever is at n % capacity
  uint64_t added_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_WATCH_TRACE_RING_H_
