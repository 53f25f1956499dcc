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

__device__ __forceinline__ int64_t TilesOf(int64_t rows) {
  return (rows + kTile - 1) / kTile;
}

// First element of the unit in queries, in keys and values of the key head that it reads, and in
// the output; rows are query_stride, key_stride and the heads' width apart.
__device__ __forceinline__ int64_t QueryOffset(const AttentionKernelShape& s,
                                               const AttentionUnit& unit) {
  return unit.sequence * s.rows * s.query_stride + unit.head * s.head_width;
}
__device__ __forceinline__ int64_t KeyOffset(const AttentionKernelShape& s,
                                             const AttentionUnit& unit) {
  const int64_t key_head = unit.head / (s.heads / s.key_heads);
  return unit.sequence * s.columns * s.key_stride + key_head * s.head_width;
}
__device__ __forceinline__ int64_t OutputOffset(const AttentionKernelShape& s,
                                                const AttentionUnit& unit) {
  return unit.sequence * s.rows * s.heads * s.head_width + unit.head * s.head_width;
}
// Place of the unit's row 0 in log_sum_exp.
__device__ __forceinline__ int64_t StatisticOffset(const AttentionKernelShape& s,
                                                   const AttentionUnit& unit) {
  return (unit.sequence * s.heads + unit.head) * s.rows;
}
// The element of dropout's stream of the unit's row and column 0.
__device__ __forceinline__ uint64_t RowElement(const AttentionKernelShape& s,
                                               const AttentionUnit& unit, int64_t row) {
  return static_cast<uint64_t>(StatisticOffset(s, unit) + row) * static_cast<uint64_t>(s.columns);
}

// Rows and columns of a sample that exist (operations/attention/attention_keys.h).
struct UnitExtent {
  int64_t rows, columns;
  const int32_t* starts;  // causal: the first column of each row; null: 0
};
__device__ __forceinline__ UnitExtent ExtentOf(const AttentionKernelShape& s,
                                               const AttentionUnit& unit) {
  if (s.keys == nullptr) return {s.rows, s.columns, nullptr};
  if (!s.full) return {s.rows, s.columns, s.keys + unit.sequence * s.rows};
  int64_t columns = s.keys[unit.sequence];
  if (columns < 1) columns = 1;
  if (columns > s.columns) columns = s.columns;
  return {s.cross ? s.rows : columns, columns, nullptr};
}

// Loads rows [first, first + 32) of a unit; elements of rows from `rows` on are zeros. wide: heads
// begin at multiples of 16 bytes.
template <int kWidth, typename T>
__device__ __forceinline__ void LoadTile(const AttentionKernelShape& s, bool wide, const T* source,
                                         int64_t stride, int64_t first, int64_t rows, float* tile) {
  constexpr int kCount = kPack<T>, kRowPacks = kWidth / kCount;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kRowPacks; i += kAttentionThreads) {
    const int row = i / kRowPacks, column = i % kRowPacks * kCount;
    const int64_t end = first + row < rows ? s.head_width : 0;
    const Floats<kCount> values =
        LoadFloats<kCount>(source + (first + row) * stride, column, 0, end, wide);
#pragma unroll
    for (int j = 0; j < kCount; ++j) tile[row * TileStride(kWidth) + column + j] = values.at[j];
  }
}

// The columns that a row attends to. The causal rule also holds for rows beyond the last one.
struct RowSpan {
  int64_t first, end;
  __device__ __forceinline__ bool has(int64_t column) const {
    return column >= first && column < end;
  }
};
__device__ __forceinline__ int64_t FirstColumn(const UnitExtent& extent, int64_t row) {
  if (extent.starts == nullptr || row >= extent.rows) return 0;
  const int64_t start = extent.starts[row];
  return start < 0 ? 0 : start > row ? row : start;
}
__device__ __forceinline__ RowSpan SpanOf(const AttentionKernelShape& s, const UnitExtent& extent,
                                          int64_t row) {
  return {FirstColumn(extent, row), s.full ? extent.columns : row + 1};
}
// The first column that a tile of queries attends to.
__device__ __forceinline__ int64_t FirstColumnOfTile(const UnitExtent& extent, int64_t tile) {
  if (extent.starts == nullptr) return 0;
  int64_t first = FirstColumn(extent, tile * kTile);
  for (int64_t row = tile * kTile + 1; row < (tile + 1) * kTile && row < extent.rows; ++row) {
    const int64_t column = FirstColumn(extent, row);
    if (column < first) first = column;
  }
  return first;
}
// Tiles of keys that a tile of queries attends to: [first, end). None for a tile of padding.
struct TileSpan {
  int64_t first, end;
};
__device__ __forceinline__ TileSpan KeyTiles(const AttentionKernelShape& s,
                                             const UnitExtent& extent, int64_t tile) {
  if (tile * kTile >= extent.rows) return {0, 0};
  return {FirstColumnOfTile(extent, tile) / kTile, s.full ? TilesOf(extent.columns) : tile + 1};
}
// Tiles of queries that attend to a tile of keys; of those with documents, not all do.
__device__ __forceinline__ TileSpan QueryTiles(const AttentionKernelShape& s,
                                               const UnitExtent& extent, int64_t tile) {
  if (tile * kTile >= extent.columns) return {0, 0};
  return {s.full ? 0 : tile, TilesOf(extent.rows)};
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
