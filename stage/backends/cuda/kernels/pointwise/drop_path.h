// Drop path, one random word a sample (operations/pointwise/drop_path.h), on the card. T: float or
// Bf16. y may be x.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_DROP_PATH_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_DROP_PATH_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

// n elements, `each` a sample.
template <typename T>
cudaError_t DropPath(cudaStream_t stream, const T* x, T* y, int64_t n, int64_t each,
                     DropoutRule rule, PhiloxStream random);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_DROP_PATH_H_
