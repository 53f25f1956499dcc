// Batch norm on the card (operations/norms/batch_norm.h). T: float or Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_BATCH_NORM_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_BATCH_NORM_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

struct ChannelShape {
  int64_t rows, channels;
};
// y may be x. scratch, here and below: PlanColumnSum(rows, channels, 1, .).
template <typename T>
cudaError_t BatchNorm(cudaStream_t stream, ChannelShape shape, const T* x, const float* weight,
                      const float* bias, float epsilon, T* y, float* mean, float* rstd,
                      float* variance, float* scratch);
template <typename T>
cudaError_t BatchNormSums(cudaStream_t stream, ChannelShape shape, const T* dy, const T* x,
                          const float* mean, const float* rstd, float* d_weight, float* d_bias,
                          float* scratch);
// One number per channel each.
struct BatchNormFactors {
  const float *weight, *mean, *rstd, *d_weight, *d_bias;
};
// dx may be dy.
template <typename T>
cudaError_t BatchNormInputGradient(cudaStream_t stream, ChannelShape shape,
                                   const BatchNormFactors& factors, const T* dy, const T* x, T* dx);

// y may be x.
template <typename T>
cudaError_t BatchNormFixed(cudaStream_t stream, ChannelShape shape, const T* x, const float* weight,
                           const float* bias, const float* mean, const float* variance,
                           float epsilon, T* y);
// moments: [3, channels]; shape.rows: the number of new values of a channel.
cudaError_t BatchNormFold(cudaStream_t stream, ChannelShape shape, const float* mean,
                          const float* variance, double* moments);
cudaError_t BatchNormCommit(cudaStream_t stream, int64_t channels, const double* moments,
                            double momentum, float* mean, float* variance);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_BATCH_NORM_H_
