// Images with each pixel repeated on the card (operations/images/upsample.h). T: float or Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_IMAGES_UPSAMPLE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_IMAGES_UPSAMPLE_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

// Extents of the small images, and how often a pixel is repeated.
struct UpsampleShape {
  int64_t samples, height, width, channels, times_height, times_width;
};
template <typename T>
cudaError_t Upsample(cudaStream_t stream, UpsampleShape shape, const T* x, T* y);
template <typename T>
cudaError_t UpsampleGradient(cudaStream_t stream, UpsampleShape shape, const T* dy, T* dx);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_IMAGES_UPSAMPLE_H_
