// Activations, element by element (operations/pointwise/activations.cc), on the card. T: float or
// Bf16. Outputs may be inputs.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_ACTIVATIONS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_ACTIVATIONS_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

template <typename T>
cudaError_t Gelu(cudaStream_t stream, const T* x, T* y, int64_t n);
template <typename T>
cudaError_t GeluGradient(cudaStream_t stream, const T* dy, const T* x, T* dx, int64_t n);
template <typename T>
cudaError_t GeluErf(cudaStream_t stream, const T* x, T* y, int64_t n);
template <typename T>
cudaError_t GeluErfGradient(cudaStream_t stream, const T* dy, const T* x, T* dx, int64_t n);
template <typename T>
cudaError_t Silu(cudaStream_t stream, const T* x, T* y, int64_t n);
template <typename T>
cudaError_t SiluGradient(cudaStream_t stream, const T* dy, const T* x, T* dx, int64_t n);
template <typename T>
cudaError_t Relu(cudaStream_t stream, const T* x, T* y, int64_t n);
template <typename T>
cudaError_t ReluGradient(cudaStream_t stream, const T* dy, const T* y, T* dx, int64_t n);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_ACTIVATIONS_H_
