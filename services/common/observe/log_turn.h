// LogTurn: limits how often an event is logged, if strangers decide how often it happens. It allows
// one line in a number of seconds, with the count of events that were not logged.
// Ownership: borrows the clock.
// Threads:   thread-safe.
#ifndef STAGECOACH_SERVICES_COMMON_OBSERVE_LOG_TURN_H_
#define STAGECOACH_SERVICES_COMMON_OBSERVE_LOG_TURN_H_

#include <cstdint>
#include <mutex>
#include <optional>

#include "base/threads/clock.h"

namespace stagecoach {

class LogTurn {
 public:
  explicit LogTurn(double seconds, const Clock* clock = SystemClock::Get())
      : seconds_(seconds), clock_(clock) {}

  // Events without a line since the last one; nullopt: no line for this one either.
  std::optional<uint64_t> Take();

 private:
  const double seconds_;
  const Clock* const clock_;
  std::mutex mutex_;  // guards what follows
  std::optional<int64_t> last_line_nanos_;
  uint64_t silent_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_OBSERVE_LOG_TURN_H_
