// An error whose text was written for callers, with neither paths nor addresses. The code alone
// does not tell: PERMISSION_DENIED may come from a file.
// Threads: pure functions.
#ifndef STAGECOACH_BASE_ERRORS_CALLER_ERROR_H_
#define STAGECOACH_BASE_ERRORS_CALLER_ERROR_H_

#include <utility>

#include "absl/status/status.h"

namespace stagecoach {

inline constexpr char kForCallerPayload[] = "stagecoach/for-caller";

inline absl::Status ForCaller(absl::Status status) {
  status.SetPayload(kForCallerPayload, absl::Cord());
  return status;
}

inline bool IsForCaller(const absl::Status& status) {
  return status.GetPayload(kForCallerPayload).has_value();
}

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_ERRORS_CALLER_ERROR_H_
