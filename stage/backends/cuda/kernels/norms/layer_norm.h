// Layer norm on the card (operations/norms/layer_norm.h). T: float or Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_LAYER_NORM_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_LAYER_NORM_H_

#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/kernels/norms/norm_backward.h"

namespace stagecoach::cuda {

struct LayerNormShape {
  int64_t rows, width;
};
template <typename T>
cudaError_t LayerNorm(cudaStream_t stream, LayerNormShape shape, const T* x, const float* weight,
                      const float* bias, float epsilon, T* y, float* mean, float* rstd);
// scratch: PlanNormBackward(rows, width, 2, elements of T in 16 bytes).
template <typename T>
cudaError_t LayerNormBackward(cudaStream_t stream, NormPart part, const NormGradients<T>& all,
                              float* scratch);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_LAYER_NORM_H_
