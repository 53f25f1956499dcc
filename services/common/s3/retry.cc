#include "services/common/s3/retry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace stagecoach {
Retry::Retry(HttpTransfer* transfer, double give_up_seconds, double first_pause, const Clock* clock)
    : transfer_(*transfer),
      clock_(*clock),
      patience_(give_up_seconds),
      first_pause_(first_pause),
      moved_at_(clock->MonotonicSeconds()),
      pause_(first_pause) {}

void Retry::Moved() {
  moved_at_ = clock_.MonotonicSeconds();
  pause_ = first_pause_;
}

absl::Status Retry::After(const absl::Status& error) {
  if (clock_.MonotonicSeconds() - moved_at_ >= patience_) {
    return absl::UnavailableError(
        absl::StrCat("nothing has moved for ", patience_, " s: ", error.message()));
  }
  if (transfer_.WaitClosed(pause_)) return absl::CancelledError("this process is shutting down");
  pause_ = std::min(2 * pause_, kLongestPause);
  return absl::OkStatus();
}

}  // namespace stagecoach
