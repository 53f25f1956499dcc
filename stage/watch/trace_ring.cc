#include "stage/watch/trace_ring.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "base/errors/check.h"

namespace stagecoach {
namespace {

// A reader lets writers in after so many.
constexpr size_t kSpansPerLock = 256;

// A recovery goes back to smaller numbers under a higher generation. Tries of a step and the
// evaluation after it have its number, and are not steps of their own to people who ask for five.
auto StepKey(const TraceSpan& span) { return std::make_tuple(span.generation, span.step); }

// Not the ones seen last: a link may finish a step's message while the next step runs.
void KeepLastSteps(size_t steps, std::vector<TraceSpan>* spans) {
  std::set<decltype(StepKey(TraceSpan()))> keys;
  for (const TraceSpan& span : *spans) {
    keys.insert(StepKey(span));
    if (keys.size() > steps) keys.erase(keys.begin());
  }
  const auto older = [&](const TraceSpan& span) { return StepKey(span) < *keys.begin(); };
  spans->erase(std::remove_if(spans->begin(), spans->end(), older), spans->end());
}

}  // namespace

uint64_t TraceJob(const std::string& job_id) { return std::hash<std::string>()(job_id); }

TraceSpan TransferSpan(const LinkTransfer& transfer) {
  return {.job = TraceJob(transfer.fence.job),
          .generation = transfer.fence.generation,
          .step = transfer.fence.step,
          .begin_unix_nanos = transfer.begin_unix_nanos,
          .end_unix_nanos = transfer.end_unix_nanos,
          .bytes = transfer.bytes,
          .attempt = transfer.fence.attempt,
          .micro_batch = transfer.micro_batch,
          .track = transfer.sent ? TraceTrack::kSend : TraceTrack::kReceive,
          .kind = transfer.kind,
          .upstream = transfer.upstream_peer,
          .cell = transfer.above};
}

TraceRing::TraceRing(size_t spans) : capacity_(spans), spans_(spans) {
  CHECK(spans > 0) << "a ring has spans";
}

void TraceRing::Add(const TraceSpan& span) {
  std::lock_guard<std::mutex> lock(mutex_);
  spans_[added_++ % capacity_] = span;
}

std::vector<TraceSpan> TraceRing::Read(const std::string& job_id, uint32_t steps) const {
  const uint64_t job = TraceJob(job_id);
  std::vector<TraceSpan> found;
  uint64_t next = UINT64_MAX;  // one past the next span to look at; from the newest back
  for (bool more = true; more;) {
    std::lock_guard<std::mutex> lock(mutex_);
    next = std::min(next, added_);
    const uint64_t oldest = added_ - std::min<uint64_t>(added_, capacity_);
    for (size_t i = 0; i < kSpansPerLock && next > oldest; ++i) {
      const TraceSpan& span = spans_[--next % capacity_];
      if (span.job == job) found.push_back(span);
    }
    more = next > oldest;
  }
  if (steps > 0) KeepLastSteps(steps, &found);
  std::stable_sort(found.begin(), found.end(), [](const TraceSpan& a, const TraceSpan& b) {
    return std::tie(a.end_unix_nanos, a.begin_unix_nanos) <
           std::tie(b.end_unix_nanos, b.begin_unix_nanos);
  });
  return found;
}

}  // namespace stagecoach
