// Layer norm on the card (operations/layer_norm.h). T: float or Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_LAYER_NORM_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_LAYER_NORM_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

struct LayerNormShape {
  int64_t rows, width;
};
template <typename T>
cudaError_t LayerNorm(cudaStream_t stream, LayerNormShape shape, const T* x, const float* weight,
                      const float* bias, float epsilon, T* y, float* mean, float* rstd);
// residual: added to dx before it is rounded; may be null.
template <typename T>
cudaError_t LayerNormBackwardInput(cudaStream_t stream, LayerNormShape shape, const T* dy,
                                   const T* x, const float* weight, const float* mean,
                                   const float* rstd, const T* residual, T* dx);
// scratch: PlanColumnSum(rows, width, 2, .).
template <typename T>
cudaError_t LayerNormBackwardWeight(cudaStream_t stream, LayerNormShape shape, const T* dy,
                                    const T* x, const float* mean, const float* rstd,
                                    float* d_weight, float* d_bias, float* scratch);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_LAYER_NORM_H_
