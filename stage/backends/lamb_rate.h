// The rate of LAMB's step of one parameter, from the squared norms of its value and its direction.
// The cuda back end's kernel has the same. Thread-safe.
#ifndef STAGECOACH_STAGE_BACKENDS_LAMB_RATE_H_
#define STAGECOACH_STAGE_BACKENDS_LAMB_RATE_H_

#include <cmath>
#include <limits>

namespace stagecoach {

// The rate is not adapted if a norm is 0, or if the adapted rate would be no finite float: 0 times
// infinity is NaN.
inline float LambRate(bool adapt, float learning_rate, double value, double direction) {
  if (!adapt || !(value > 0) || !(direction > 0)) return learning_rate;
  const double ratio = std::sqrt(value) / std::sqrt(direction);
  if (!(ratio <= std::numeric_limits<float>::max())) return learning_rate;
  const float rate = learning_rate * static_cast<float>(ratio);
  return std::isfinite(rate) ? rate : learning_rate;
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_LAMB_RATE_H_
