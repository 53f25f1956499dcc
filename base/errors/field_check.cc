#include "base/errors/field_check.h"

#include "absl/strings/str_cat.h"

namespace stagecoach {

absl::Status FieldError(const std::string& path, const std::string& value,
                        const std::string& remedy) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", value, "; ", remedy));
}

absl::Status CheckInteger(const std::string& path, int64_t value, int64_t min, int64_t max) {
  if (value < min) return FieldError(path, absl::StrCat(value), absl::StrCat("must be >= ", min));
  if (value > max) return FieldError(path, absl::StrCat(value), absl::StrCat("must be <= ", max));
  return absl::OkStatus();
}

absl::Status CheckReal(const std::string& path, double value, const RealInterval& interval) {
  const bool above = interval.low_open ? value > interval.low : value >= interval.low;
  const bool below = interval.high_open ? value < interval.high : value <= interval.high;
  if (above && below) return absl::OkStatus();  // comparisons with NaN are false
  return FieldError(
      path, absl::StrCat(value),
      absl::StrCat("must be a number in ", interval.low_open ? "(" : "[", interval.low, ", ",
                   interval.high, interval.high_open ? ")" : "]"));
}

absl::Status CheckRate(const std::string& path, double value) {
  return CheckReal(path, value, {.low = 0, .high = 1, .high_open = true});
}

}  // namespace stagecoach
