// Attention backward without atomics, in two passes that both draw the scores again: one
// block for 32 queries adds up dQ over the keys, one block for 32 keys adds up dK and dV over the
// queries, each in ascending order. With P the probabilities and Z their dropout factors:
// dV = (P Z)^T dO; dP = Z * (dO V^T); dS = P * (dP - rowsum(dO * O)); dQ = dS K, dK = dS^T Q,
// scaled.
#include "stage/backends/cuda/kernels/attention/attention_tiles.cuh"

namespace stagecoach::cuda {
namespace {

// A block's shared memory (AttentionBackwardSharedBytes).
struct Tiles {
  float *queries, *d_out, *keys, *values;
  float* probabilities;  // P Z
  float* d_scores;
  float *log_sum_exp, *delta;  // of the queries
};

template <int kWidth>
__device__ __forceinline__ Tiles TilesOfBlock() {
  constexpr int kOperand = kTile * TileStride(kWidth);
  float* const base = DynamicShared();
  float* const scores = base + 4 * kOperand;
  float* const rows = scores + 2 * kTile * kScoreStride;
  return {base,
          base + kOperand,
          base + 2 * kOperand,
          base + 3 * kOperand,
          scores,
          scores + kTile * kScoreStride,
          rows,
          rows + kTile};
}

template <typename T>
struct Pointers {
  AttentionPointers<const T> in;
  const T *d_out, *out;
  const float* log_sum_exp;
  bool wide;
};

// Queries of a tile with all that belongs to them. Ends with a barrier; begins without one.
template <int kWidth, typename T>
__device__ __forceinline__ void LoadQueries(const AttentionKernelShape& s, const Pointers<T>& p,
                                            const AttentionUnit& unit, const UnitExtent& extent,
                                            int64_t tile, const Tiles& tiles) {
  const int own_row = static_cast<int>(threadIdx.x) / 4,
            quarter = static_cast<int>(threadIdx.x) % 4;
  const int64_t width = s.heads * s.head_width, row = tile * kTile + own_row;
  LoadTile<kWidth>(s, p.wide, p.in.queries + QueryOffset(s, unit), s.query_stride, tile * kTile,
                   extent.rows, tiles.queries);
  LoadTile<kWidth>(s, p.wide, p.d_out + OutputOffset(s, unit), width, tile * kTile, extent.rows,
                   tiles.d_out);
  __syncthreads();
  float sum = 0.0f;
  if (row < extent.rows) {
    const T* const out_row = p.out + OutputOffset(s, unit) + row * width;
    for (int d = quarter; d < s.head_width; d += 4) {
      sum += tiles.d_out[own_row * TileStride(kWidth) + d] * ToFloat(out_row[d]);
    }
  }
  sum = RowSum(sum);
  if (quarter == 0) {
    tiles.delta[own_row] = sum;
    tiles.log_sum_exp[own_row] =
        row < extent.rows ? p.log_sum_exp[StatisticOffset(s, unit) + row] : 0.0f;
  }
  __syncthreads();
}

template <int kWidth, typename T>
__device__ __forceinline__ void LoadKeys(const AttentionKernelShape& s, const Pointers<T>& p,
                                         const AttentionUnit& unit, const UnitExtent& extent,
                                         int64_t tile, const Tiles& tiles) {
  LoadTile<kWidth>(s, p.wide, p.in.keys + KeyOffset(s, unit), s.key_stride, tile * kTile,
                   extent.columns, tiles.keys);
  LoadTile<kWidth>(s, p.wide, p.in.values + KeyOffset(s, unit), s.key_stride, tile * kTile,
                   extent.columns, tiles.values);
}

// P Z and dS of one tile of queries with one tile of keys, a thread 8 neighbours of a row.
template <int kWidth>
__device__ __forceinline__ void ScoreTile(const AttentionKernelShape& s, const AttentionUnit& unit,
                                          const UnitExtent& extent, int64_t query_tile,
                                          int64_t key_tile, float scale, const Tiles& tiles) {
  const int own_row = static_cast<int>(threadIdx.x) / 4;
  const int first = static_cast<int>(threadIdx.x) % 4 * kScoresPerThread;
  const int64_t row = query_tile * kTile + own_row, column = key_tile * kTile + first;
  const float* const q_row = tiles.queries + own_row * TileStride(kWidth);
  const float* const d_out_row = tiles.d_out + own_row * TileStride(kWidth);
  const float* const keys = tiles.keys + first * TileStride(kWidth);
  const float* const values = tiles.values + first * TileStride(kWidth);
  float scores[kScoresPerThread], dp[kScoresPerThread];
  for (int j = 0; j < kScoresPerThread; ++j) scores[j] = dp[j] = 0.0f;
#pragma unroll 4
  for (int d = 0; d < kWidth; ++d) {
    const float q = q_row[d], g = d_out_row[d];
#pragma unroll
    for (int j = 0; j < kScoresPerThread; ++j) {
      scores[j] += q * keys[j * TileStride(kWidth) + d];
      dp[j] += g * values[j * TileStride(kWidth) + d];
    }
  }
  const float log_sum_exp = tiles.log_sum_exp[own_row], delta = tiles.delta[own_row];
  const uint64_t element = RowElement(s, unit, row) + static_cast<uint64_t>(column);
  const RowSpan span = SpanOf(s, extent, row);
  PhiloxReader reader(s.random);
#pragma unroll
  for (int j = 0; j < kScoresPerThread; ++j) {
    float kept = 0.0f, d_score = 0.0f;
    if (span.has(column + j) && row < extent.rows) {
      const float p = expf(scores[j] * scale - log_sum_exp);
      const float keep = s.rule.threshold != 0 ? KeepFactor(s.rule, reader, element + j) : 1.0f;
      kept = p * keep;
      d_score = p * (dp[j] * keep - delta) * scale;
    }
    tiles.probabilities[own_row * kScoreStride + first + j] = kept;
    tiles.d_scores[own_row * kScoreStride + first + j] = d_score;
  }
}

// A thread's columns of its row, which begins at `target`.
template <int kWidth, typename T>
__device__ __forceinline__ void StoreRow(const AttentionKernelShape& s, const float* sums,
                                         T* target) {
  const int quarter = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int i = 0; i < kWidth / 4; ++i) {
    if (quarter + 4 * i < s.head_width) target[quarter + 4 * i] = FromFloat<T>(sums[i]);
  }
}

template <int kWidth, typename T>
__global__ void __launch_bounds__(kAttentionThreads)
    QueryGradientKernel(AttentionKernelShape s, float scale, Pointers<T> p, T* d_queries) {
  const Tiles tiles = TilesOfBlock<kWidth>();
  const int own_row = static_cast<int>(threadIdx.x) / 4,
            quarter = static_cast<int>(threadIdx.x) % 4;
  const AttentionUnit unit = UnitOfBlock(s, s.heads);
  const UnitExtent extent = ExtentOf(s, unit);
  const int64_t tile = TilesOf(s.rows) - 1 - unit.tile;  // long ones first
  const TileSpan others = KeyTiles(s, extent, tile);
  float sums[kWidth / 4];
#pragma unroll
  for (int i = 0; i < kWidth / 4; ++i) sums[i] = 0.0f;
  LoadQueries<kWidth>(s, p, unit, extent, tile, tiles);
  for (int64_t other = others.first; other < others.end; ++other) {
    __syncthreads();  // the last tile has been read
    LoadKeys<kWidth>(s, p, unit, extent, other, tiles);
    __syncthreads();
    ScoreTile<kWidth>(s, unit, extent, tile, other, scale, tiles);
    __syncthreads();
#pragma unroll 4
    for (int c = 0; c < kTile; ++c) {
      const float ds = tiles.d_scores[own_row * kScoreStride + c];
      const float* const key = tiles.keys + c * TileStride(kWidth) + quarter;
#pragma unroll
      for (int i = 0; i < kWidth / 4; ++i) sums[i] += ds * key[4 * i];
    }
  }
  const int64_t row = tile * kTile + own_row;
  if (row >= s.rows) return;
  StoreRow<kWidth>(s, sums, d_queries + QueryOffset(s, unit) + row * s.query_stride);
}

template <int kWidth, typename T>
__global__ void __launch_bounds__(kAttentionThreads)
    KeyGradientKernel(AttentionKernelShape s, float scale, Pointers<T> p, T* d_keys, T* d_values) {
  const Tiles tiles = TilesOfBlock<kWidth>();
  const int own_row = static_cast<int>(threadIdx.x) / 4,
            quarter = static_cast<int>(threadIdx.x) % 4;
  // A block of a key head: the heads that read it are added up in order.
  AttentionUnit unit = UnitOfBlock(s, s.key_heads);
  const int64_t group = s.heads / s.key_heads;
  unit.head *= group;
  const UnitExtent extent = ExtentOf(s, unit);
  const int64_t tile = unit.tile;  // the first keys have the most queries
  const TileSpan others = QueryTiles(s, extent, tile);
  float d_key[kWidth / 4], d_value[kWidth / 4];
#pragma unroll
  for (int i = 0; i < kWidth / 4; ++i) d_key[i] = d_value[i] = 0.0f;
  LoadKeys<kWidth>(s, p, unit, extent, tile, tiles);
  for (int64_t member = 0; member < group; ++member, ++unit.head) {
    for (int64_t other = others.first; other < others.end; ++other) {
      // Rows of later documents see none of these keys.
      if (FirstColumnOfTile(extent, other) >= (tile + 1) * kTile) continue;
      __syncthreads();  // the last tile has been read
      LoadQueries<kWidth>(s, p, unit, extent, other, tiles);
      ScoreTile<kWidth>(s, unit, extent, other, tile, scale, tiles);
      __syncthreads();
#pragma unroll 2
      for (int r = 0; r < kTile; ++r) {
        const float probability = tiles.probabilities[r * kScoreStride + own_row];
        const float ds = tiles.d_scores[r * kScoreStride + own_row];
        const float* const query = tiles.queries + r * TileStride(kWidth) + quarter;
        const float* const d_out = tiles.d_out + r * TileStride(kWidth) + quarter;
#pragma unroll
        for (int i = 0; i < kWidth / 4; ++i) {
          d_value[i] += probability * d_out[4 * i];
          d_key[i] += ds * query[4 * i];
        }
      }
    }
  }
  --unit.head;  // any of the group
  const int64_t column = tile * kTile + own_row;
  if (column >= s.columns) return;
  const int64_t offset = KeyOffset(s, unit) + column * s.key_stride;
  StoreRow<kWidth>(s, d_key, d_keys + offset);
  StoreRow<kWidth>(s, d_value, d_values + offset);
}

template <int kWidth, typename T>
cudaError_t Run(cudaStream_t stream, const AttentionKernelShape& shape, const Pointers<T>& pointers,
                const AttentionPointers<T>& d) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(shape.head_width));
  const LaunchShape queries = AttentionLaunch(shape.sequences, shape.heads, shape.rows);
  const LaunchShape keys = AttentionLaunch(shape.sequences, shape.key_heads, shape.columns);
  const size_t shared = AttentionBackwardSharedBytes(kWidth);
  const cudaError_t error = Launch(QueryGradientKernel<kWidth, T>, queries, shared, stream, shape,
                                   scale, pointers, d.queries);
  if (error != cudaSuccess) return error;
  return Launch(KeyGradientKernel<kWidth, T>, keys, shared, stream, shape, scale, pointers, d.keys,
                d.values);
}

}  // namespace

template <typename T>
cudaError_t AttentionBackward(cudaStream_t stream, const AttentionKernelShape& shape,
                              const T* d_out, const AttentionPointers<const T>& in, const T* out,
                              const float* log_sum_exp, const AttentionPointers<T>& d) {
  const bool wide = RowsAligned<T>(shape.head_width, d_out, in.queries, in.keys);
  const Pointers<T> pointers = {in, d_out, out, log_sum_exp, wide};
  switch (PaddedHeadWidth(shape.head_width)) {
    case 32:
      return Run<32>(stream, shape, pointers, d);
    case 64:
      return Run<64>(stream, shape, pointers, d);
    default:
      return Run<128>(stream, shape, pointers, d);
  }
}

template cudaError_t AttentionBackward(cudaStream_t, const AttentionKernelShape&, const float*,
                                       const AttentionPointers<const float>&, const float*,
                                       const float*, const AttentionPointers<float>&);
template cudaError_t AttentionBackward(cudaStream_t, const AttentionKernelShape&, const Bf16*,
                                       const AttentionPointers<const Bf16>&, const Bf16*,
                                       const float*, const AttentionPointers<Bf16>&);

}  // namespace stagecoach::cuda
