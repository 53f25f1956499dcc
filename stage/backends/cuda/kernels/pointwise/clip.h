// Clip on the card (operations/pointwise/clip.h). T: float or Bf16. Outputs may be inputs.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_CLIP_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_CLIP_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

template <typename T>
cudaError_t Clip(cudaStream_t stream, const T* x, T* y, int64_t n, float limit);
template <typename T>
cudaError_t ClipGradient(cudaStream_t stream, const T* dy, const T* x, T* dx, int64_t n,
                         float limit);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_CLIP_H_
