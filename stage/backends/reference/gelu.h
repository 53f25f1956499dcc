// GELU, tanh form (Hendrycks and Gimpel, 1606.08415, section 2; GPT-2's choice), in double.
#ifndef STAGECOACH_STAGE_BACKENDS_REFERENCE_GELU_H_
#define STAGECOACH_STAGE_BACKENDS_REFERENCE_GELU_H_

#include <cmath>

namespace stagecoach {

inline constexpr double kGeluScale = 0.7978845608028654;  // sqrt(2 / pi)
inline constexpr double kGeluCubic = 0.044715;

inline double Gelu(double x) {
  return 0.5 * x * (1.0 + std::tanh(kGeluScale * (x + kGeluCubic * x * x * x)));
}

inline double GeluDerivative(double x) {
  const double t = std::tanh(kGeluScale * (x + kGeluCubic * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * kGeluScale * (1.0 + 3.0 * kGeluCubic * x * x);
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_REFERENCE_GELU_H_
