// Group norm on the card (operations/norms/group_norm.h). T: float or Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_GROUP_NORM_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_GROUP_NORM_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

struct GroupShape {
  int64_t samples, places, channels, groups;
};
// y may be x.
template <typename T>
cudaError_t GroupNorm(cudaStream_t stream, GroupShape shape, const T* x, const float* weight,
                      const float* bias, float epsilon, T* y, float* mean, float* rstd);
// d_weight, d_bias: [samples, channels].
template <typename T>
cudaError_t GroupNormSums(cudaStream_t stream, GroupShape shape, const T* dy, const T* x,
                          const float* mean, const float* rstd, float* d_weight, float* d_bias);
struct GroupNormFactors {
  const float *weight, *mean, *rstd, *d_weight, *d_bias;
};
// dx may be dy.
template <typename T>
cudaError_t GroupNormInputGradient(cudaStream_t stream, GroupShape shape,
                                   const GroupNormFactors& factors, const T* dy, const T* x, T* dx);
// target [channels] adds, for each channel, the total of sums [samples, channels].
// scratch: PlanColumnSum(samples, channels, 1, .).
cudaError_t GroupNormWeightGradient(cudaStream_t stream, GroupShape shape, const float* sums,
                                    float* target, float* scratch);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_GROUP_NORM_H_
