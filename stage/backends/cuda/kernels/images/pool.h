// Pools on the card (operations/images/pool.h). T: float or Bf16. All samples are in the shape.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_IMAGES_POOL_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_IMAGES_POOL_H_

#include "stage/backends/cuda/kernels.h"
#include "stage/backends/window_shape.h"

namespace stagecoach::cuda {

template <typename T>
cudaError_t MaxPool(cudaStream_t stream, const WindowShape& shape, const T* x, T* y,
                    int32_t* choice);
template <typename T>
cudaError_t MaxPoolGradient(cudaStream_t stream, const WindowShape& shape, const T* dy,
                            const int32_t* choice, T* dx);
template <typename T>
cudaError_t AveragePool(cudaStream_t stream, const WindowShape& shape, bool count_padding,
                        const T* x, T* y);
template <typename T>
cudaError_t AveragePoolGradient(cudaStream_t stream, const WindowShape& shape, bool count_padding,
                                const T* dy, T* dx);
// A sample has `places` rows of channels.
template <typename T>
cudaError_t GlobalAveragePool(cudaStream_t stream, int64_t samples, int64_t places,
                              int64_t channels, const T* x, T* y);
template <typename T>
cudaError_t GlobalAveragePoolGradient(cudaStream_t stream, int64_t samples, int64_t places,
                                      int64_t channels, const T* dy, T* dx);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_IMAGES_POOL_H_
