// Helpers of the attention kernels: the tile that a block works on, its rows, and their copy into
// shared memory. A tile is 32 rows of one head of one sequence. Four of a block's 128 threads share
// a row: thread t has row t / 4, columns 8 (t % 4) .. + 7 of a score tile and columns t % 4,
// t % 4 + 4, ... of an output row.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_TILES_CUH_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_TILES_CUH_

#include "stage/backends/cuda/kernels/attention/attention.h"
#include "stage/backends/cuda/packs.cuh"

namespace stagecoach::cuda {

constexpr int kTile = kAttentionTile;
constexpr int kScoreStride = kTile + 1;
constexpr int kScoresPerThread = kTile / 4;

__host__ __device__ constexpr int TileStride(int padded_width) { return padded_width + 1; }

// One head of one sequence.
struct AttentionUnit {
  int64_t sequence, head;
  int64_t tile;  // the block's
};

// Blocks of one tile index are neighbours, so that the long ones can start first. heads: the number
// of heads that have blocks.
__device__ __forceinline__ AttentionUnit UnitOfBlock(const AttentionKernelShape& s, int64_t heads) {
  const int64_t units = s.sequences * heads;
  const int64_t unit = blockIdx.x % units;
  return {unit / heads, unit % heads, blockIdx.x / units};
}

__device__ __forceinline__ int64_t AttentionTiles(const AttentionKernelShape& s) {
  return (s.context + kTile - 1) / kTile;
}

__device__ __forceinline__ int64_t PackedStride(const AttentionKernelShape& s) {
  return (s.heads + 2 * s.key_heads) * s.head_width;
}
// First element of the unit in qkv (part 0: queries, 1: keys, 2: values of the key head that it
// reads) and in the output; rows are PackedStride and the heads' width apart.
__device__ __forceinline__ int64_t PackedOffset(const AttentionKernelShape& s,
                                                const AttentionUnit& unit, int part) {
  const int64_t key_head = unit.head / (s.heads / s.key_heads);
  const int64_t head = part == 0 ? unit.head : s.heads + (part - 1) * s.key_heads + key_head;
  return unit.sequence * s.context * PackedStride(s) + head * s.head_width;
}
__device__ __forceinline__ int64_t OutputOffset(const AttentionKernelShape& s,
                                                const AttentionUnit& unit) {
  return unit.sequence * s.context * s.heads * s.head_width + unit.head * s.head_width;
}
// Place of the unit's row 0 in log_sum_exp.
__device__ __forceinline__ int64_t StatisticOffset(const AttentionKernelShape& s,
                                                   const AttentionUnit& unit) {
  return (unit.sequence * s.heads + unit.head) * s.context;
}

// Loads rows [first, first + 32) of a unit; missing elements are zeros. wide: heads begin at
// multiples of 16 bytes.
template <int kWidth, typename T>
__device__ __forceinline__ void LoadTile(const AttentionKernelShape& s, bool wide, const T* source,
                                         int64_t stride, int64_t first, float* tile) {
  constexpr int kCount = kPack<T>, kRowPacks = kWidth / kCount;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kRowPacks; i += kAttentionThreads) {
    const int row = i / kRowPacks, column = i % kRowPacks * kCount;
    const int64_t end = first + row < s.context ? s.head_width : 0;
    const Floats<kCount> values =
        LoadFloats<kCount>(source + (first + row) * stride, column, 0, end, wide);
#pragma unroll
    for (int j = 0; j < kCount; ++j) tile[row * TileStride(kWidth) + column + j] = values.at[j];
  }
}

// Whether a row attends to a column. The causal rule also holds for rows beyond the last one.
__device__ __forceinline__ bool Attends(const AttentionKernelShape& s, int64_t row,
                                        int64_t column) {
  return s.full ? column < s.context : column <= row;
}
// A tile of queries attends to tiles of keys up to LastKeyTile. The tiles of queries that attend to
// a tile of keys begin at FirstQueryTile.
__device__ __forceinline__ int64_t LastKeyTile(const AttentionKernelShape& s, int64_t tile) {
  return s.full ? AttentionTiles(s) - 1 : tile;
}
__device__ __forceinline__ int64_t FirstQueryTile(const AttentionKernelShape& s, int64_t tile) {
  return s.full ? 0 : tile;
}

// Sum and maximum over the four threads of a row; all four get the same bits.
__device__ __forceinline__ float RowSum(float value) {
  value += __shfl_xor_sync(kAllLanes, value, 1);
  value += __shfl_xor_sync(kAllLanes, value, 2);
  return value;
}
__device__ __forceinline__ float RowMax(float value) {
  value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, 1));
  return fmaxf(value, __shfl_xor_sync(kAllLanes, value, 2));
}

// The factor of a probability: 0 or the scale.
__device__ __forceinline__ float KeepFactor(const DropoutRule& rule, PhiloxReader& reader,
                                            uint64_t element) {
  return reader.Bits(element) >= rule.threshold ? rule.scale : 0.0f;
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_TILES_CUH_
