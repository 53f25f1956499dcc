// Fixed positions on the card (operations/attention/add_sinusoids.h). T: float or Bf16. y may be x.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ADD_SINUSOIDS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ADD_SINUSOIDS_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

// sines, cosines: [context, width / 2]; x: [pairs], all rows of all samples, and `table` pairs a
// sample.
template <typename T>
cudaError_t AddSinusoids(cudaStream_t stream, const T* x, const float* sines, const float* cosines,
                         T* y, int64_t pairs, int64_t table);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ADD_SINUSOIDS_H_
