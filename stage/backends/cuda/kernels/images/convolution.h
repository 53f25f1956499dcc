// Convolutions on the card (operations/images/convolution.h). T: float or Bf16. All samples are in
// the shape.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_IMAGES_CONVOLUTION_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_IMAGES_CONVOLUTION_H_

#include "stage/backends/cuda/kernels.h"
#include "stage/backends/window_shape.h"

namespace stagecoach::cuda {

// bias may be null.
template <typename T>
cudaError_t Convolution(cudaStream_t stream, const ConvolutionShape& shape, const T* x,
                        const T* weight, const T* bias, T* y);
template <typename T>
cudaError_t ConvolutionInputGradient(cudaStream_t stream, const ConvolutionShape& shape,
                                     const T* dy, const T* weight, T* dx);
template <typename T>
cudaError_t ConvolutionWeightGradient(cudaStream_t stream, const ConvolutionShape& shape,
                                      const T* dy, const T* x, float* d_weight);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_IMAGES_CONVOLUTION_H_
