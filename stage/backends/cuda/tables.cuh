// EntryOf: the tensor of a table that a block works on.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_TABLES_CUH_
#define STAGECOACH_STAGE_BACKENDS_CUDA_TABLES_CUH_

#include <cstdint>

#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {

// The entry of this chunk: the last one with first_chunk <= chunk. Tensors without elements have no
// chunk and are never found. It returns a copy: the compiler must assume that a write through the
// entry's pointers changes the table.
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
