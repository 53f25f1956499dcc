// The parts of a linear layer that a product does not fuse (operations/linear.h). T: float or Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_LINEAR_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_LINEAR_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

// y[rows, columns] adds bias[columns].
template <typename T>
cudaError_t AddBias(cudaStream_t stream, const T* bias, T* y, int64_t rows, int64_t columns);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_LINEAR_H_
