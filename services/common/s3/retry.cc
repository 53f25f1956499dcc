#include "services/common/s3/retry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/threads/clock.h"

namespace stagecoach {
namespace {

double SecondsNow() { return SystemClock::Get()->MonotonicSeconds(); }

}  // namespace

Retry::Retry(HttpTransfer* transfer, double give_up_seconds, double first_pause)
    : transfer_(*transfer),
      patience_(give_up_seconds),
      first_pause_(first_pause),
      moved_at_(SecondsNow()),
      pause_(first_pause) {}

void Retry::Moved() {
  moved_at_ = SecondsNow();
  pause_ = first_pause_;
}

absl::Status Retry::After(const absl::Status& error) {
  if (SecondsNow() - moved_at_ >= patience_) {
    return absl::UnavailableError(
        absl::StrCat("nothing has moved for ", patience_, " s: ", error.message()));
  }
  if (transfer_.WaitClosed(pause_)) return absl::CancelledError("this process is shutting down");
  pause_ = std::min(2 * pause_, kLongestPause);
  return absl::OkStatus();
}

}  // namespace stagecoach
