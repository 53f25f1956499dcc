// batch_norm: y = (x - mean) * rstd * weight + bias, channel by channel (the last extent), with the mean and
// the biased variance of the micro-batch, all its samples and places together (Ioffe, Szegedy 2015, 1502.03167;
// GPipe, section 2.3); rstd = 1 / sqrt(variance + epsilon).
// Inputs: x, weight, bias (float32 [channels]). Outputs: y; mean and rstd (float32 [channels], one for the
// micro-batch).
//
// batch_norm_sums: dy, x, mean, rstd -> d_weight, d_bias (float32 [channels]): the sums of dy * xhat and of dy
//   over samples and places, xhat = (x - mean) * rstd. Both parts of the backward read them.
// batch_norm_input_gradient: dy, x, weight, mean, rstd, d_weight, d_bias -> dx, with n samples and places:
//   dx = weight * rstd * (dy - d_bias / n - xhat * d_weight / n)
// add_to: a, b, ...: adds each to a gradient of a parameter, in float32.
#ifndef STAGECOACH_OPERATIONS_BATCH_NORM_H_
#define STAGECOACH_OPERATIONS_BATCH_NORM_H_

#include "operations/attributes.h"

namespace stagecoach {

struct BatchNormAttributes {
  double epsilon = 1e-5;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Between("epsilon", epsilon, kMinEpsilon, kMaxEpsilon);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_BATCH_NORM_H_
