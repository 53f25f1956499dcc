// Images moved in a frame of zeros on the card (operations/images/pad.h). T: float or Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_IMAGES_PAD_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_IMAGES_PAD_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

// x is [height, width, channels], y [to_height, to_width, channels].
struct PadShape {
  int64_t samples, height, width, channels, to_height, to_width, top, left;
};
template <typename T>
cudaError_t PadImages(cudaStream_t stream, PadShape shape, const T* x, T* y);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_IMAGES_PAD_H_
