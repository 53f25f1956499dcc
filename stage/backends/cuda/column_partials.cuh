// Sums over the rows of a gradient, and of the gradient times a layer norm's xhat, in two stages: chunks of
// rows to partial sums, those to the sums. Which share is whose depends on the shape alone (PlanColumnSum), so
// the order of every addition is fixed.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_COLUMN_PARTIALS_CUH_
#define STAGECOACH_STAGE_BACKENDS_CUDA_COLUMN_PARTIALS_CUH_

#include "stage/backends/cuda/packs.cuh"

namespace stagecoach::cuda {

struct ColumnShares {
  int64_t rows, columns, chunks, rows_per_chunk;
};

// Partial sums of dy, and of dy * xhat if kNorm, for 32 packs of columns and one chunk of rows.
// Lane l of 8 takes rows l, l + 8, ...; the lanes are added in order.
template <typename T, bool kNorm>
__global__ void ColumnPartialKernel(ColumnShares s, bool wide, const T* dy, const T* x,
                                    const float* mean, const float* rstd, float* sums,
                                    float* norm_sums) {
  constexpr int kCount = kPack<T>, kColumns = kColumnThreads * kCount;
  __shared__ float lane_sum[kColumnLanes][kColumns];
  __shared__ float lane_norm[kNorm ? kColumnLanes : 1][kColumns];
  const int64_t column_blocks = (s.columns + kColumns - 1) / kColumns;
  const int64_t chunk = blockIdx.x / column_blocks;
  const int in_block = static_cast<int>(threadIdx.x) % kColumnThreads * kCount;
  const int lane = static_cast<int>(threadIdx.x) / kColumnThreads;
  const int64_t first_column = blockIdx.x % column_blocks * kColumns;
  const int64_t column = first_column + in_block;
  const int64_t first = chunk * s.rows_per_chunk;
  const int64_t end = first + s.rows_per_chunk < s.rows ? first + s.rows_per_chunk : s.rows;
  Floats<kCount> sum, norm;
#pragma unroll
  for (int j = 0; j < kCount; ++j) sum.at[j] = norm.at[j] = 0.0f;
  if (column < s.columns) {
#pragma unroll 4
    for (int64_t row = first + lane; row < end; row += kColumnLanes) {
      const Floats<kCount> g = LoadFloats<kCount>(dy + row * s.columns, column, 0, s.columns, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) sum.at[j] += g.at[j];
      if constexpr (kNorm) {
        const Floats<kCount> values =
            LoadFloats<kCount>(x + row * s.columns, column, 0, s.columns, wide);
        const float row_mean = mean[row], row_rstd = rstd[row];
#pragma unroll
        for (int j = 0; j < kCount; ++j) {
          norm.at[j] += g.at[j] * ((values.at[j] - row_mean) * row_rstd);
        }
      }
    }
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    lane_sum[lane][in_block + j] = sum.at[j];
    if (kNorm) lane_norm[lane][in_block + j] = norm.at[j];
  }
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < kColumns; c += kColumnThreads * kColumnLanes) {
    if (first_column + c >= s.columns) continue;
    float total = lane_sum[0][c], norm_total = kNorm ? lane_norm[0][c] : 0.0f;
    for (int other = 1; other < kColumnLanes; ++other) {
      total += lane_sum[other][c];
      if (kNorm) norm_total += lane_norm[other][c];
    }
    sums[chunk * s.columns + first_column + c] = total;
    if (kNorm) norm_sums[chunk * s.columns + first_column + c] = norm_total;
  }
}

// Targets add the partial sums of their columns: lane l of 8 takes chunks l, l + 8, ...; the lanes
// are added in order. A second target's partial sums stand behind the first one's.
template <typename Target>
__global__ void ColumnTotalKernel(ColumnShares s, const float* sums, Target* target,
                                  Target* second_target) {
  __shared__ float lane_sum[kColumnLanes][kColumnThreads];
  const int64_t column_blocks = (s.columns + kColumnThreads - 1) / kColumnThreads;
  const bool second = blockIdx.x >= column_blocks;
  const int in_block = static_cast<int>(threadIdx.x) % kColumnThreads;
  const int lane = static_cast<int>(threadIdx.x) / kColumnThreads;
  const int64_t column = blockIdx.x % column_blocks * kColumnThreads + in_block;
  const float* const own = sums + (second ? s.chunks * s.columns : 0);
  float sum = 0.0f;
  if (column < s.columns) {
#pragma unroll 8
    for (int64_t chunk = lane; chunk < s.chunks; chunk += kColumnLanes) {
      sum += own[chunk * s.columns + column];
    }
  }
  lane_sum[lane][in_block] = sum;
  __syncthreads();
  if (lane != 0 || column >= s.columns) return;
  for (int other = 1; other < kColumnLanes; ++other) sum += lane_sum[other][in_block];
  (second ? second_target : target)[column] += sum;
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_COLUMN_PARTIALS_CUH_
