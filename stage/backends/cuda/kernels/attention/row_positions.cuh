// Positions of rows on the card, as RowPositions (operations/attention/rotary.h).
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ROW_POSITIONS_CUH_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ROW_POSITIONS_CUH_

#include <cstdint>

#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {

// `ids` may be null.
__device__ __forceinline__ int64_t PositionOf(int64_t row, const int32_t* ids, int64_t positions) {
  if (ids == nullptr) return row % positions;
  const int64_t id = ids[row];
  return id < 0 ? 0 : id < positions ? id : positions - 1;
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ROW_POSITIONS_CUH_
