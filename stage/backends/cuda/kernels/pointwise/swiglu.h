// SwiGLU on the card (operations/pointwise/swiglu.cc). T: float or Bf16. Outputs may be inputs.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_SWIGLU_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_SWIGLU_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

template <typename T>
cudaError_t Swiglu(cudaStream_t stream, const T* gate, const T* up, T* y, int64_t n);
template <typename T>
cudaError_t SwigluGradient(cudaStream_t stream, const T* dy, const T* gate, const T* up, T* d_gate,
                           T* d_up, int64_t n);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_POINTWISE_SWIGLU_H_
