// Status helpers: returning early, and adding context on the way up.
// Errors: every layer adds its context ("link 2 -> 3", "step 17"). The status code stays that of
// the original error.
#ifndef STAGECOACH_BASE_ERRORS_STATUS_H_
#define STAGECOACH_BASE_ERRORS_STATUS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stagecoach {

// "context: message", same code and payloads. An ok status stays ok.
absl::Status Annotate(const absl::Status& status, const std::string& context);

template <typename T>
absl::StatusOr<T> Annotate(absl::StatusOr<T> value, const std::string& context) {
  if (value.ok()) return value;
  return Annotate(value.status(), context);
}

}  // namespace stagecoach

#define STAGECOACH_CONCAT_INNER(a, b) a##b
#define STAGECOACH_CONCAT(a, b) STAGECOACH_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expression)                        \
  do {                                                     \
    absl::Status stagecoach_status = (expression);         \
    if (!stagecoach_status.ok()) return stagecoach_status; \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expression) \
  ASSIGN_OR_RETURN_INNER(STAGECOACH_CONCAT(stagecoach_or_, __LINE__), lhs, expression)
#define ASSIGN_OR_RETURN_INNER(or_value, lhs, expression)  \
  auto or_value = (expression);                            \
  if (!or_value.ok()) return std::move(or_value).status(); \
  lhs = *std::move(or_value)

#endif  // STAGECOACH_BASE_ERRORS_STATUS_H_
