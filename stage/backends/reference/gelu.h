// GELU (Hendrycks and Gimpel, 1606.08415, section 2) in double: in the tanh form, GPT-2's choice,
// and by the error function.
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

inline double NormalShare(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
inline double GeluErf(double x) { return x * NormalShare(x); }
inline double GeluErfDerivative(double x) {
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::acos(-1.0));
  return NormalShare(x) + x * density;
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_REFERENCE_GELU_H_
