// batch_norm: y = (x - mean) * rstd * weight + bias, channel by channel (the last extent). The mean
// and the biased variance are those of the micro-batch, over all its samples and places (Ioffe,
// Szegedy 2015, 1502.03167; GPipe, section 2.3). rstd = 1 / sqrt(variance + epsilon).
// Inputs: x, weight, bias (float32 [channels]). With `momentum` also the running mean and variance
// (states, float32 [channels]), which training does not read. Outputs: y; mean, rstd and variance
// (float32 [channels], one for the micro-batch).
//
// batch_norm_fixed: x, weight, bias, mean, variance -> y, the same with given moments. In an
//   evaluation these are the running ones. No gradient.
// batch_norm_fold: mean, variance of a micro-batch with `places` a sample; changes moments, float64
//   [3, channels]. They are count, mean, and M2, the sum of squares of the centred values. They
//   become those of the micro-batch and all before (Chan, Golub, LeVeque 1979):
//     n = a + b; delta = mean_b - mean_a; mean = mean_a + delta * b / n
//     M2 = M2_a + M2_b + delta^2 * a * b / n
// batch_norm_commit: moments; changes running mean and variance to (1 - momentum) * running +
//   momentum * own. `own` is the mean and the unbiased variance, M2 / (n - 1), of the mini-batch.
//   In float64, rounded once.
//
// batch_norm_sums: dy, x, mean, rstd -> d_weight, d_bias (float32 [channels]). They are the sums of
//   dy * xhat and of dy over samples and places, with xhat = (x - mean) * rstd. Both parts of the
//   backward read them.
// batch_norm_input_gradient: dy, x, weight, mean, rstd, d_weight, d_bias -> dx, with n samples and
//   places:
//   dx = weight * rstd * (dy - d_bias / n - xhat * d_weight / n)
// add_to: a, b, ...: adds each to a gradient of a parameter, in float32.
#ifndef STAGECOACH_OPERATIONS_NORMS_BATCH_NORM_H_
#define STAGECOACH_OPERATIONS_NORMS_BATCH_NORM_H_

#include <cstdint>

#include "operations/attributes.h"

namespace stagecoach {

inline constexpr double kMinMomentum = 1e-6;

struct BatchNormAttributes {
  double epsilon = 1e-5;
  double momentum = 0;  // the mini-batch's share of the running moments; 0: no running moments
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Between("epsilon", epsilon, kMinEpsilon, kMaxEpsilon);
    visit.ZeroOrBetween("momentum", momentum, kMinMomentum, 1);
  }
};
struct BatchNormFixedAttributes {
  double epsilon = 1e-5;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Between("epsilon", epsilon, kMinEpsilon, kMaxEpsilon);
  }
};
struct BatchNormFoldAttributes {
  int64_t places = 1;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("places", places, 1, kMaxPlaces);
  }
  static constexpr int64_t kMaxPlaces = int64_t{1} << 40;
};
struct BatchNormCommitAttributes {
  double momentum = 0.1;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Between("momentum", momentum, kMinMomentum, 1);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_NORMS_BATCH_NORM_H_
