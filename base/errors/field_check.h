// Field checks: one form for errors about a value of a job spec. An error names the field, the
// value and the remedy: "training.micro_batches: 0; must be >= 1".
// Errors: INVALID_ARGUMENT.
#ifndef STAGECOACH_BASE_ERRORS_FIELD_CHECK_H_
#define STAGECOACH_BASE_ERRORS_FIELD_CHECK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace stagecoach {

absl::Status FieldError(const std::string& path, const std::string& value,
                        const std::string& remedy);
absl::Status CheckInteger(const std::string& path, int64_t value, int64_t min, int64_t max);

// Bounds of a real number; an open bound itself is not allowed. NaN is in no interval.
struct RealInterval {
  double low = 0;
  double high = 0;
  bool low_open = false;
  bool high_open = false;
};
absl::Status CheckReal(const std::string& path, double value, const RealInterval& interval);

// The dropout rates: [0, 1).
absl::Status CheckRate(const std::string& path, double value);

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_ERRORS_FIELD_CHECK_H_
