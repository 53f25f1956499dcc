// Attention forward, the scores never in memory: a block has 32 queries in shared memory and walks
// the keys that they attend to, tile by tile in ascending order, with a running maximum and sum
// (Milakov and Gimelshein, arXiv 1805.02867; Dao et al., arXiv 2205.14135).
#include "stage/backends/cuda/kernels/attention/attention_tiles.cuh"

namespace stagecoach::cuda {
namespace {

struct RowState {
  float largest = -INFINITY;
  float sum = 0.0f;
};

// Scores of one row with 8 keys, from tiles of queries and keys.
template <int kWidth>
__device__ __forceinline__ void Scores(const float* q_row, const float* keys, float* scores) {
  for (int j = 0; j < kScoresPerThread; ++j) scores[j] = 0.0f;
#pragma unroll 8
  for (int d = 0; d < kWidth; ++d) {
    const float q = q_row[d];
#pragma unroll
    for (int j = 0; j < kScoresPerThread; ++j) scores[j] += q * keys[j * TileStride(kWidth) + d];
  }
}

// Turns scores into probabilities relative to the row's new maximum, dropout applied, and returns
// what everything before must be multiplied by. The row may see none of these keys, and none
// before.
__device__ __forceinline__ float Absorb(const AttentionKernelShape& s, const RowSpan& span,
                                        int64_t first_column, uint64_t first_element, float scale,
                                        float* scores, RowState& state) {
  float largest = -INFINITY;
#pragma unroll
  for (int j = 0; j < kScoresPerThread; ++j) {
    scores[j] = span.has(first_column + j) ? scores[j] * scale : -INFINITY;
    largest = fmaxf(largest, scores[j]);
  }
  largest = fmaxf(state.largest, RowMax(largest));
  const float shift = largest == -INFINITY ? 0.0f : largest;
  const float correction = expf(state.largest - shift);
  float sum = 0.0f;
  PhiloxReader reader(s.random);
#pragma unroll
  for (int j = 0; j < kScoresPerThread; ++j) {
    float p = expf(scores[j] - shift);
    sum += p;
    if (s.rule.threshold != 0 && span.has(first_column + j)) {
      p *= KeepFactor(s.rule, reader, first_element + j);
    }
    scores[j] = p;
  }
  state.sum = state.sum * correction + RowSum(sum);
  state.largest = largest;
  return correction;
}

template <int kWidth, typename T>
__global__ void __launch_bounds__(kAttentionThreads)
    AttentionKernel(AttentionKernelShape s, bool wide, float scale, AttentionPointers<const T> in,
                    T* out, float* log_sum_exp) {
  float* const queries = DynamicShared();
  float* const operand = queries + kTile * TileStride(kWidth);  // keys, then values
  float* const probabilities = operand + kTile * TileStride(kWidth);
  const int own_row = static_cast<int>(threadIdx.x) / 4,
            quarter = static_cast<int>(threadIdx.x) % 4;
  const AttentionUnit unit = UnitOfBlock(s, s.heads);
  const UnitExtent extent = ExtentOf(s, unit);
  const int64_t tile = TilesOf(s.rows) - 1 - unit.tile;  // long ones first
  const int64_t row = tile * kTile + own_row;
  const RowSpan span = SpanOf(s, extent, row);
  const TileSpan others = KeyTiles(s, extent, tile);
  const int64_t width = s.heads * s.head_width;
  const uint64_t row_element = RowElement(s, unit, row);

  LoadTile<kWidth>(s, wide, in.queries + QueryOffset(s, unit), s.query_stride, tile * kTile,
                   extent.rows, queries);
  RowState state;
  float sums[kWidth / 4];
#pragma unroll
  for (int i = 0; i < kWidth / 4; ++i) sums[i] = 0.0f;
  for (int64_t other = others.first; other < others.end; ++other) {
    const int64_t first_column = other * kTile + kScoresPerThread * quarter;
    __syncthreads();  // the last tile's values have been read
    LoadTile<kWidth>(s, wide, in.keys + KeyOffset(s, unit), s.key_stride, other * kTile,
                     extent.columns, operand);
    __syncthreads();
    float scores[kScoresPerThread];
    Scores<kWidth>(queries + own_row * TileStride(kWidth),
                   operand + kScoresPerThread * quarter * TileStride(kWidth), scores);
    const float correction =
        Absorb(s, span, first_column, row_element + first_column, scale, scores, state);
#pragma unroll
    for (int j = 0; j < kScoresPerThread; ++j) {
      probabilities[own_row * kScoreStride + kScoresPerThread * quarter + j] = scores[j];
    }
    __syncthreads();  // the keys have been read
    LoadTile<kWidth>(s, wide, in.values + KeyOffset(s, unit), s.key_stride, other * kTile,
                     extent.columns, operand);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kWidth / 4; ++i) sums[i] *= correction;
#pragma unroll 4
    for (int c = 0; c < kTile; ++c) {
      const float p = probabilities[own_row * kScoreStride + c];
      const float* const values = operand + c * TileStride(kWidth) + quarter;
#pragma unroll
      for (int i = 0; i < kWidth / 4; ++i) sums[i] += p * values[4 * i];
    }
  }
  if (row >= s.rows) return;
  const bool padding = row >= extent.rows;
  T* const out_row = out + OutputOffset(s, unit) + row * width;
#pragma unroll
  for (int i = 0; i < kWidth / 4; ++i) {
    if (quarter + 4 * i < s.head_width)
      out_row[quarter + 4 * i] = FromFloat<T>(padding ? 0.0f : sums[i] / state.sum);
  }
  if (quarter == 0) {
    log_sum_exp[StatisticOffset(s, unit) + row] = padding ? 0.0f : state.largest + logf(state.sum);
  }
}

template <int kWidth, typename T>
cudaError_t Run(cudaStream_t stream, const AttentionKernelShape& shape,
                const AttentionPointers<const T>& in, T* out, float* log_sum_exp) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(shape.head_width));
  return Launch(AttentionKernel<kWidth, T>,
                AttentionLaunch(shape.sequences, shape.heads, shape.rows),
                AttentionForwardSharedBytes(kWidth), stream, shape,
                RowsAligned<T>(shape.head_width, in.queries, in.keys), scale, in, out, log_sum_exp);
}

}  // namespace

template <typename T>
cudaError_t Attention(cudaStream_t stream, const AttentionKernelShape& shape,
                      const AttentionPointers<const T>& in, T* out, float* log_sum_exp) {
  switch (PaddedHeadWidth(shape.head_width)) {
    case 32:
      return Run<32>(stream, shape, in, out, log_sum_exp);
    case 64:
      return Run<64>(stream, shape, in, out, log_sum_exp);
    default:
      return Run<128>(stream, shape, in, out, log_sum_exp);
  }
}

template cudaError_t Attention(cudaStream_t, const AttentionKernelShape&,
                               const AttentionPointers<const float>&, float*, float*);
template cudaError_t Attention(cudaStream_t, const AttentionKernelShape&,
                               const AttentionPointers<const Bf16>&, Bf16*, float*);

}  // namespace stagecoach::cuda
