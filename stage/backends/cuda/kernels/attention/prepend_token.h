// A token in front of rows, and their positions, on the card
// (operations/attention/prepend_token.h). T: float or Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_PREPEND_TOKEN_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_PREPEND_TOKEN_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

// rows: including the token's.
struct PrependTokenShape {
  int64_t samples, rows, width;
};
template <typename T>
cudaError_t PrependToken(cudaStream_t stream, PrependTokenShape shape, const T* x, const T* token,
                         const T* position, T* y);
template <typename T>
cudaError_t PrependTokenBackward(cudaStream_t stream, PrependTokenShape shape, const T* dy,
                                 float* d_token, float* d_position);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_PREPEND_TOKEN_H_
