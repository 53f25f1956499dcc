// Kernels over a table of tensors (kernels.h), all of a stage in one launch: a block has one chunk of
// one tensor, which it finds in the table; a thread has four neighbours at a time. One tensor alone
// is a table of one, so the bits do not depend on how many are worked on together.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_TABLES_CUH_
#define STAGECOACH_STAGE_BACKENDS_CUDA_TABLES_CUH_

#include <cstdint>

#include "stage/backends/cuda/launch.cuh"
#include "stage/backends/cuda/packs.cuh"

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

constexpr int kTablePack = kPack<float>;  // elements that a thread has at a time

// Calls f(entry, i) for the first index of each of the thread's packs.
template <typename Table, typename F>
__device__ __forceinline__ void ForEachPack(const Table& table, F f) {
  for (int64_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
    const auto entry = EntryOf(table.entries, table.count, chunk);
    const int64_t first = (chunk - entry.first_chunk) * kUpdateChunk;
    const int64_t end = first + kUpdateChunk < entry.n ? first + kUpdateChunk : entry.n;
    for (int64_t i = first + static_cast<int64_t>(threadIdx.x) * kTablePack; i < end;
         i += static_cast<int64_t>(blockDim.x) * kTablePack) {
      f(entry, i);
    }
  }
}

template <typename Table>
inline LaunchShape TableLaunch(const Table& table) {
  const int64_t grid = table.chunks < kMaxGrid ? table.chunks : kMaxGrid;
  return {static_cast<uint32_t>(grid), kElementThreads};
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_TABLES_CUH_
