// Which tensor of a table a block works on.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_TABLES_CUH_
#define STAGECOACH_STAGE_BACKENDS_CUDA_TABLES_CUH_

#include <cstdint>

#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {

// The entry that has this chunk: the last one whose first chunk is not behind it. Tensors without
// elements have no chunk and are never found. A copy: what is written through its pointers could be
// the table for all that the compiler knows.
template <typename Entry>
__device__ __forceinline__ Entry EntryOf(const Entry* entries, int64_t count, int64_t chunk) {
  int64_t low = 0, high = count;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    if (entries[middle].first_chunk <= chunk) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return entries[low];
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_TABLES_CUH_
