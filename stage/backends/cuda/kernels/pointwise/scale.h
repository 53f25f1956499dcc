// Multiplication by a constant on the card (operations/pointwise/scale.h). T: float or Bf16. y may
// be x.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_SCALE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_SCALE_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

template <typename T>
cudaError_t Scale(cudaStream_t stream, const T* x, T* y, int64_t n, float factor);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_SCALE_H_
