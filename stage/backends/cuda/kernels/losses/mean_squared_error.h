// The mean squared error on the card (operations/losses/mean_squared_error.h). T: float or Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_LOSSES_MEAN_SQUARED_ERROR_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_LOSSES_MEAN_SQUARED_ERROR_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

int64_t SquaredErrorBlocks(int64_t n);
// weights: one for `numbers` elements, or null. scale: one number. gradient: may be null or
// prediction. sums: the sum, then the total weight of all elements. scratch: 2 doubles a block.
template <typename T>
cudaError_t SquaredError(cudaStream_t stream, int64_t n, int64_t numbers, const T* prediction,
                         const float* target, const float* weights, const float* scale, T* gradient,
                         double* sums, double* scratch);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_LOSSES_MEAN_SQUARED_ERROR_H_
