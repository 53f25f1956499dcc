// The running moments of batch norm, channel by channel, in float64. All back ends with memory that
// the host reads share these kernels. The formulas: operations/norms/batch_norm.h.
#ifndef STAGECOACH_STAGE_BACKENDS_MOMENTS_H_
#define STAGECOACH_STAGE_BACKENDS_MOMENTS_H_

#include <cstdint>

#include "operations/norms/batch_norm.h"
#include "stage/backends/kernel_table.h"
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

// Kernel of batch_norm_fold: a few numbers a channel, once a micro-batch.
inline Kernel FoldMoments(const Call& call) {
  const int64_t places = AttributesOf<BatchNormFoldAttributes>(call).places;
  return [places](const KernelContext& context, const KernelArguments& a) {
    const auto count = static_cast<double>(context.run.sequences * places);
    const Moments to(a.adds[0]);
    for (int64_t c = 0; c < to.channels; ++c) {
      const double mean = a.inputs[0].data<float>()[c];
      const double variance = a.inputs[1].data<float>()[c];  // the biased one
      const double all = to.count[c] + count, delta = mean - to.mean[c];
      to.mean[c] += delta * (count / all);
      to.m2[c] += variance * count + delta * delta * (to.count[c] * count / all);
      to.count[c] = all;
    }
  };
}

// Kernel of batch_norm_commit, once a step.
inline Kernel CommitMoments(const Call& call) {
  const double momentum = AttributesOf<BatchNormCommitAttributes>(call).momentum;
  return [momentum](const KernelContext&, const KernelArguments& a) {
    const Moments of(a.inputs[0]);
    float *mean = a.adds[0].data<float>(), *variance = a.adds[1].data<float>();
    for (int64_t c = 0; c < of.channels; ++c) {
      const double unbiased = of.m2[c] / (of.count[c] - 1);
      mean[c] = static_cast<float>((1 - momentum) * mean[c] + momentum * of.mean[c]);
      variance[c] = static_cast<float>((1 - momentum) * variance[c] + momentum * unbiased);
    }
  };
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_MOMENTS_H_
