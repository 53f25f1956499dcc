// target[columns] adds, for each column, the sum over the rows of a term. A first stage makes a
// partial sum of each chunk of rows, a second one adds these. The cut depends on the shape alone
// (PlanColumnSum), so the order of every addition is fixed.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_COLUMN_SUMS_CUH_
#define STAGECOACH_STAGE_BACKENDS_CUDA_COLUMN_SUMS_CUH_

#include "stage/backends/cuda/packs.cuh"

namespace stagecoach::cuda {

struct SumShares {
  int64_t rows, columns, chunks, rows_per_chunk;
};

// Lane l of 8 takes rows l, l + 8, ... of its chunk; the lanes are added in order.
template <typename T, typename Term>
__global__ void TermPartialKernel(SumShares s, Term term, float* sums) {
  constexpr int kCount = kPack<T>, kColumns = kColumnThreads * kCount;
  __shared__ float lane_sum[kColumnLanes][kColumns];
  const int64_t column_blocks = (s.columns + kColumns - 1) / kColumns;
  const int64_t chunk = blockIdx.x / column_blocks;
  const int in_block = static_cast<int>(threadIdx.x) % kColumnThreads * kCount;
  const int lane = static_cast<int>(threadIdx.x) / kColumnThreads;
  const int64_t first_column = blockIdx.x % column_blocks * kColumns;
  const int64_t first = chunk * s.rows_per_chunk;
  const int64_t end = first + s.rows_per_chunk < s.rows ? first + s.rows_per_chunk : s.rows;
  Floats<kCount> sum;
#pragma unroll
  for (int j = 0; j < kCount; ++j) sum.at[j] = 0.0f;
  if (first_column + in_block < s.columns) {
#pragma unroll 4
    for (int64_t row = first + lane; row < end; row += kColumnLanes) {
      const Floats<kCount> values = term(row, first_column + in_block);
#pragma unroll
      for (int j = 0; j < kCount; ++j) sum.at[j] += values.at[j];
    }
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) lane_sum[lane][in_block + j] = sum.at[j];
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < kColumns; c += kColumnThreads * kColumnLanes) {
    if (first_column + c >= s.columns) continue;
    float total = lane_sum[0][c];
    for (int other = 1; other < kColumnLanes; ++other) total += lane_sum[other][c];
    sums[chunk * s.columns + first_column + c] = total;
  }
}

// Partial sums of chunks: [chunks, stride], of which the first `columns` are added.
struct ColumnTotals {
  int64_t columns, stride, chunks;
};

// Targets add the partial sums of their columns: lane l of 8 takes chunks l, l + 8, ...; the lanes
// are added in order. A second target's partial sums stand behind the first one's.
template <typename Target>
__global__ void ColumnTotalKernel(ColumnTotals s, const float* sums, Target* target,
                                  Target* second_target) {
  __shared__ float lane_sum[kColumnLanes][kColumnThreads];
  const int64_t column_blocks = (s.columns + kColumnThreads - 1) / kColumnThreads;
  const bool second = blockIdx.x >= column_blocks;
  const int in_block = static_cast<int>(threadIdx.x) % kColumnThreads;
  const int lane = static_cast<int>(threadIdx.x) / kColumnThreads;
  const int64_t column = blockIdx.x % column_blocks * kColumnThreads + in_block;
  const float* const own = sums + (second ? s.chunks * s.stride : 0);
  float sum = 0.0f;
  if (column < s.columns) {
#pragma unroll 8
    for (int64_t chunk = lane; chunk < s.chunks; chunk += kColumnLanes) {
      sum += own[chunk * s.stride + column];
    }
  }
  lane_sum[lane][in_block] = sum;
  __syncthreads();
  if (lane != 0 || column >= s.columns) return;
  for (int other = 1; other < kColumnLanes; ++other) sum += lane_sum[other][in_block];
  (second ? second_target : target)[column] += sum;
}

// term(row, column) returns Floats<kPack<T>>: the row's terms for columns from `column` on. Terms
// beyond the last column are ignored. scratch: PlanColumnSum(rows, columns, 1, .).
template <typename T, typename Term>
cudaError_t SumTerms(cudaStream_t stream, int64_t rows, int64_t columns, Term term, float* target,
                     float* scratch) {
  const ColumnSumPlan plan = PlanColumnSum(rows, columns, 1, kPack<T>);
  const SumShares shares = {rows, columns, plan.chunks, plan.rows_per_chunk};
  const cudaError_t error =
      Launch(TermPartialKernel<T, Term>, plan.partial, 0, stream, shares, term, scratch);
  if (error != cudaSuccess) return error;
  const ColumnTotals totals = {columns, columns, plan.chunks};
  return Launch(ColumnTotalKernel<float>, plan.total, 0, stream, totals, scratch, target, nullptr);
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_COLUMN_SUMS_CUH_
