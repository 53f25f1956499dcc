// RMS norm on the card (operations/rms_norm.h). T: float or Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_RMS_NORM_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_RMS_NORM_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

struct RowsShape {
  int64_t rows, width;
};
template <typename T>
cudaError_t RmsNorm(cudaStream_t stream, RowsShape shape, const T* x, const float* weight,
                    float epsilon, T* y, float* rstd);
// residual: added to dx before it is rounded; may be null.
template <typename T>
cudaError_t RmsNormInputGradient(cudaStream_t stream, RowsShape shape, const T* dy, const T* x,
                                 const float* weight, const float* rstd, const T* residual, T* dx);
// scratch: PlanColumnSum(rows, width, 1, .).
template <typename T>
cudaError_t RmsNormWeightGradient(cudaStream_t stream, RowsShape shape, const T* dy, const T* x,
                                  const float* rstd, float* d_weight, float* scratch);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_RMS_NORM_H_
