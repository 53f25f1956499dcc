// A sum of two values on the card (operations/pointwise/add.cc). T: float or Bf16. y may be a or b.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_ADD_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_ADD_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

template <typename T>
cudaError_t Add(cudaStream_t stream, const T* a, const T* b, T* y, int64_t n);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_ADD_H_
