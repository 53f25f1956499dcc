#include "services/common/observe/log_turn.h"

#include <utility>

namespace stagecoach {

std::optional<uint64_t> LogTurn::Take() {
  const int64_t now = clock_->MonotonicNanos();
  std::lock_guard<std::mutex> lock(mutex_);
  const bool early =
      last_line_nanos_.has_value() && static_cast<double>(now - *last_line_nanos_) < seconds_ * 1e9;
  if (early) {
    ++silent_;
    return std::nullopt;
  }
  last_line_nanos_ = now;
  return std::exchange(silent_, 0);
}

}  // namespace stagecoach
