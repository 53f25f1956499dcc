// Fixed positions on the card (operations/attention/add_sinusoids.h). T: float or Bf16. y may be x.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ADD_SINUSOIDS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ADD_SINUSOIDS_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

struct SinusoidsShape {
  int64_t rows, positions, pairs;  // rows of all samples; positions of the tables; pairs of a row
};
// sines, cosines: [positions, pairs]. ids: the position of each row, or null for its number modulo
// `positions`.
template <typename T>
cudaError_t AddSinusoids(cudaStream_t stream, SinusoidsShape shape, const T* x, const int32_t* ids,
                         const float* sines, const float* cosines, T* y);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ADD_SINUSOIDS_H_
