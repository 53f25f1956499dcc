// RMS norm on the card (operations/norms/rms_norm.h). T: float or Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_RMS_NORM_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_RMS_NORM_H_

#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/kernels/norms/norm_backward.h"

namespace stagecoach::cuda {

struct RowsShape {
  int64_t rows, width;
};
template <typename T>
cudaError_t RmsNorm(cudaStream_t stream, RowsShape shape, const T* x, const float* weight,
                    float epsilon, T* y, float* rstd);
// mean and d_bias stay null. scratch: PlanNormBackward(rows, width, 1, elements of T in 16 bytes).
template <typename T>
cudaError_t RmsNormBackward(cudaStream_t stream, NormPart part, const NormGradients<T>& all,
                            float* scratch);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_RMS_NORM_H_
