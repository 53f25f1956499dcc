// The place of a job's error, written behind its cause, which people read first.
// Example: "a.jpg: WebP, not JPEG or PNG [at stage 0, micro-batch 1, ...; job a, step 3, train,
// stage 0 (gpu-1)]".
// Threads: pure functions.
// Errors:  the code and the payloads stay the first one's, as by Annotate (base/errors/status.h).
//          These tell the kind of the error.
#ifndef STAGECOACH_BASE_ERRORS_ERROR_PLACE_H_
#define STAGECOACH_BASE_ERRORS_ERROR_PLACE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stagecoach {

// "text [at place]"; places join, the inner one first: "text [at micro-batch 1; step 3]".
std::string TextAt(const std::string& text, const std::string& place);
absl::Status AnnotateAt(const absl::Status& status, const std::string& place);

template <typename T>
absl::StatusOr<T> AnnotateAt(absl::StatusOr<T> value, const std::string& place) {
  if (value.ok()) return value;
  return AnnotateAt(value.status(), place);
}

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_ERRORS_ERROR_PLACE_H_
