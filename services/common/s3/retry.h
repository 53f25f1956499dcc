// Retry: how long calls to a store are repeated, and the pauses between them.
// Ownership: borrows the transfer, whose Shutdown ends a pause, and the clock.
// Threads:   one.  Units: seconds.
#ifndef STAGECOACH_SERVICES_COMMON_S3_RETRY_H_
#define STAGECOACH_SERVICES_COMMON_S3_RETRY_H_

#include <string>

#include "absl/status/status.h"
#include "base/threads/clock.h"
#include "services/common/s3/http_transfer.h"

namespace stagecoach {

class Retry {
 public:
  static constexpr double kFirstPause = 0.05, kLongestPause = 2;

  Retry(HttpTransfer* transfer, double give_up_seconds, double first_pause = kFirstPause,
        const Clock* clock = SystemClock::Get());
  // Bytes moved: the patience begins anew.
  void Moved();
  // Waits; OK: try again. Otherwise the error to tell: UNAVAILABLE with the last one, or CANCELLED.
  absl::Status After(const absl::Status& error);

 private:
  HttpTransfer& transfer_;
  const Clock& clock_;
  const double patience_, first_pause_;
  double moved_at_;
  double pause_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_S3_RETRY_H_
