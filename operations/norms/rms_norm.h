// rms_norm: y = x * rstd * weight over the last extent. rstd = 1 / sqrt(mean of x^2 + epsilon) is
// an output, because the gradient reads it (Zhang, Sennrich 2019, "Root Mean Square Layer
// Normalization").
// Inputs: x, weight (float32 [width]). Outputs: y, rstd (float32, one a row).
//
// rms_norm_input_gradient: dy, x, weight, rstd [, residual] -> dx, with g = dy * weight:
//   dx = rstd * (g - x * rstd^2 * mean of g * x)  [+ residual]
// rms_norm_weight_gradient: dy, x, rstd; adds to d_weight the sum over rows of dy * x * rstd.
#ifndef STAGECOACH_OPERATIONS_NORMS_RMS_NORM_H_
#define STAGECOACH_OPERATIONS_NORMS_RMS_NORM_H_

#include "operations/attributes.h"

namespace stagecoach {

struct RmsNormAttributes {
  double epsilon = 1e-5;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Between("epsilon", epsilon, kMinEpsilon, kMaxEpsilon);
  }
};

// For the input gradient; the weight gradient has none.
struct RmsNormGradientAttributes {
  bool residual = false;  // adds the last input to the gradient before the one rounding
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Flag("residual", residual);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_NORMS_RMS_NORM_H_
