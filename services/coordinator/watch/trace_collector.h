// TraceCollector: puts a job's trace together from its stages, all asked at once. It compares every
// stage's clock with ours by several short exchanges, as NTP does. The stage's time is taken to lie
// halfway between question and answer. The exchange with the shortest round trip counts: its error
// is the smallest (half the round trip).
// Ownership: borrows stages and clock, which outlive every collection under way.
// Threads:   thread-safe; `done` runs once, on the thread of the last answer, within about
//            kDeadlineSeconds.
// Errors:    none as a whole; a stage that does not answer has its `error` set instead of spans.
// See:       proto/stagecoach/v1/telemetry.proto, StageTrace.
#ifndef STAGECOACH_SERVICES_COORDINATOR_WATCH_TRACE_COLLECTOR_H_
#define STAGECOACH_SERVICES_COORDINATOR_WATCH_TRACE_COLLECTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/threads/clock.h"
#include "services/coordinator/stages/stage_observer.h"
#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

class TraceCollector {
 public:
  static constexpr double kDeadlineSeconds = 2.0;  // for all questions to one stage
  static constexpr double kExchangeSeconds = 0.5;  // for one comparison of clocks
  static constexpr int kExchanges = 5;

  TraceCollector(StageObserver* stages, const Clock* clock) : stages_(stages), clock_(clock) {}

  // steps: number of the job's last steps, of all stages together; 0: all that the stages hold. The
  // answer has a StageTrace per target.
  void Collect(const std::string& job_id, uint32_t steps, const std::vector<StageTarget>& targets,
               std::function<void(v1::GetTraceResponse)> done);

 private:
  struct Collection;
  class StageCollection;

  StageObserver* const stages_;
  const Clock* const clock_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_WATCH_TRACE_COLLECTOR_H_
