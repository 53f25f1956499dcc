// Arithmetic that stops at the largest number instead of wrapping around. Forecasts of absurd job
// specs must come out as "too much", not as something small.
#ifndef STAGECOACH_BASE_NUMBERS_SATURATE_H_
#define STAGECOACH_BASE_NUMBERS_SATURATE_H_

#include <cstdint>
#include <limits>

namespace stagecoach {

// For a, b >= 0.
inline int64_t SaturatingMultiply(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<int64_t>::max() : result;
}
inline int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<int64_t>::max() : result;
}

// The next multiple of `block`.
inline int64_t SaturatingRoundUp(int64_t n, int64_t block) {
  return SaturatingMultiply(n / block + (n % block != 0 ? 1 : 0), block);
}

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_NUMBERS_SATURATE_H_
