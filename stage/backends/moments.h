// The running moments of batch norm, channel by channel, in float64: what every back end whose memory the host reads
// computes with. The formulas: operations/batch_norm.h.
#ifndef STAGECOACH_STAGE_BACKENDS_MOMENTS_H_
#define STAGECOACH_STAGE_BACKENDS_MOMENTS_H_

#include <cstdint>

#include "stage/tensor/tensor.h"

namespace stagecoach {

// float64 [3, channels].
struct Moments {
  explicit Moments(const Tensor& tensor)
      : channels(tensor.elements() / 3),
        count(tensor.data<double>()),
        mean(count + channels),
        m2(mean + channels) {}
  int64_t channels;
  double *count, *mean, *m2;
};

// `variance` is the biased one of `count` new values.
inline void FoldMoments(const Moments& to, int64_t c, double count, double mean, double variance) {
  const double all = to.count[c] + count, delta = mean - to.mean[c];
  to.mean[c] += delta * (count / all);
  to.m2[c] += variance * count + delta * delta * (to.count[c] * count / all);
  to.count[c] = all;
}

inline void CommitMoments(const Moments& of, int64_t c, double momentum, float* mean,
                          float* variance) {
  const double unbiased = of.m2[c] / (of.count[c] - 1);
  mean[c] = static_cast<float>((1 - momentum) * mean[c] + momentum * of.mean[c]);
  variance[c] = static_cast<float>((1 - momentum) * variance[c] + momentum * unbiased);
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_MOMENTS_H_
