// Dropout, one random word an element (operations/pointwise/dropout.h), on the card. T: float or
// Bf16. y may be x.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_DROPOUT_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_DROPOUT_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

template <typename T>
cudaError_t Dropout(cudaStream_t stream, const T* x, T* y, int64_t n, DropoutRule rule,
                    PhiloxStream random);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_DROPOUT_H_
