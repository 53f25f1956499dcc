#include "coordinator/job/failure_class.h"

#include <algorithm>
#include <cmath>

namespace stagecoach {
namespace {

constexpr int64_t kAtOnce = 2;       // recoveries without a wait
constexpr double kFirstSeconds = 1;  // of waiting
constexpr double kMostSeconds = 60;
constexpr int64_t kMostDoublings = 10;  // beyond that

}  // namespace

FailureClass ClassOf(Activity activity, const absl::Status& status, bool has_run) {
  const bool loads = activity == Activity::kLoad;
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
      return FailureClass::kJob;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return loads ? FailureClass::kJob : FailureClass::kStage;
    // Memory that is too small, files that are not there: known only once a stage has looked.
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
      return loads && !has_run ? FailureClass::kJob : FailureClass::kStage;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:  // another stream serves the boundary
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
      return FailureClass::kWorld;
    // Of a step: a frame that a link brought. Of a load: what the stage reads from its disk.
    case absl::StatusCode::kDataLoss:
      return loads ? FailureClass::kStage : FailureClass::kWorld;
    default:
      return FailureClass::kStage;
  }
}

double BackOffSeconds(int64_t setbacks) {
  if (setbacks <= kAtOnce) return 0;
  const int64_t doublings = std::min(setbacks - kAtOnce - 1, kMostDoublings);
  return std::min(std::ldexp(kFirstSeconds, static_cast<int>(doublings)), kMostSeconds);
}

}  // namespace stagecoach
