// Averages of all tensors of a stage. C++17, as stage/backends/cuda/kernels.h says.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_AVERAGE_UPDATE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_AVERAGE_UPDATE_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

// second += rate * (first - second)
cudaError_t Average(cudaStream_t stream, const PairTable& table, float rate);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_AVERAGE_UPDATE_H_
