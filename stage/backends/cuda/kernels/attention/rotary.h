// Rotary on the card (operations/attention/rotary.h). T: float or Bf16. y may be x.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ROTARY_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ROTARY_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

struct RotaryShape {
  int64_t rows, positions;  // positions: of the tables
  int64_t turned_heads, value_heads, pairs;
  bool interleaved;
};
// cosines, sines: [positions, pairs]. ids: the position of each row, or null for its number modulo
// `positions`.
template <typename T>
cudaError_t Rotary(cudaStream_t stream, RotaryShape shape, const int32_t* ids, const float* cosines,
                   const float* sines, const T* x, T* y);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ROTARY_H_
