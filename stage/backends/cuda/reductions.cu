// Long sums in two stages: fixed shares to partial sums, the partial sums in ascending order. Which
// share is whose depends on the shape alone, so the order of every addition is fixed.
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/packs.cuh"
#include "stage/backends/cuda/tables.cuh"

namespace stagecoach::cuda {
namespace {

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
__global__ void ColumnTotalKernel(ColumnShares s, const float* sums, float* target,
                                  float* second_target) {
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

__global__ void NormPartialKernel(NormTable table, double* partial) {
  constexpr int kCount = kPack<float>;
  __shared__ double shared[32];
  for (int64_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
    const NormEntry e = EntryOf(table.entries, table.count, chunk);
    const int64_t first = (chunk - e.first_chunk) * e.elements_per_chunk;
    const int64_t end = first + e.elements_per_chunk < e.n ? first + e.elements_per_chunk : e.n;
    double sum = 0.0;
#pragma unroll 4
    for (int64_t i = first + static_cast<int64_t>(threadIdx.x) * kCount; i < end;
         i += static_cast<int64_t>(blockDim.x) * kCount) {
      const Floats<kCount> values = LoadFloats<kCount>(e.x, i, first, end, table.wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const double value = values.at[j];
        sum += value * value;
      }
    }
    sum = BlockSum(sum, shared);
    if (threadIdx.x == 0) partial[chunk] = sum;
  }
}

// The block's sum: thread t adds elements t, t + 256, ..., then the threads are added in a fixed
// tree.
__device__ __forceinline__ double TotalOf(const double* partial, int64_t count, double* shared) {
  double sum = 0.0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += partial[i];
  return BlockSum(sum, shared);
}

// A block a tensor.
__global__ void NormTotalKernel(NormTable table, const double* partial) {
  __shared__ double shared[32];
  for (int64_t i = blockIdx.x; i < table.count; i += gridDim.x) {
    const NormEntry e = table.entries[i];
    const int64_t chunks = (e.n + e.elements_per_chunk - 1) / e.elements_per_chunk;
    const double sum = TotalOf(partial + e.first_chunk, chunks, shared);
    if (threadIdx.x == 0) *e.result = sum;
  }
}

__global__ void OrderedTotalKernel(const double* partial, int64_t count, double* result) {
  __shared__ double shared[32];
  const double sum = TotalOf(partial, count, shared);
  if (threadIdx.x == 0) *result = sum;
}

}  // namespace

cudaError_t OrderedTotal(cudaStream_t stream, const double* partial, int64_t count,
                         double* result) {
  return Launch(OrderedTotalKernel, LaunchShape{1, kElementThreads}, 0, stream, partial, count,
                result);
}

template <typename T>
cudaError_t ColumnSum(cudaStream_t stream, const T* dy, float* d_bias, int64_t rows,
                      int64_t columns, float* scratch) {
  const ColumnSumPlan plan = PlanColumnSum(rows, columns, 1, kPack<T>);
  const ColumnShares shares = {rows, columns, plan.chunks, plan.rows_per_chunk};
  const cudaError_t error =
      Launch(ColumnPartialKernel<T, false>, plan.partial, 0, stream, shares,
             RowsAligned<T>(columns, dy), dy, nullptr, nullptr, nullptr, scratch, nullptr);
  if (error != cudaSuccess) return error;
  return Launch(ColumnTotalKernel, plan.total, 0, stream, shares, scratch, d_bias, nullptr);
}

template <typename T>
cudaError_t LayerNormBackwardWeight(cudaStream_t stream, LayerNormShape shape, const T* dy,
                                    const T* x, const float* mean, const float* rstd,
                                    float* d_weight, float* d_bias, float* scratch) {
  const ColumnSumPlan plan = PlanColumnSum(shape.rows, shape.width, 2, kPack<T>);
  const ColumnShares shares = {shape.rows, shape.width, plan.chunks, plan.rows_per_chunk};
  float* const norm_sums = scratch + plan.chunks * shape.width;
  const cudaError_t error =
      Launch(ColumnPartialKernel<T, true>, plan.partial, 0, stream, shares,
             RowsAligned<T>(shape.width, dy, x), dy, x, mean, rstd, scratch, norm_sums);
  if (error != cudaSuccess) return error;
  return Launch(ColumnTotalKernel, plan.total, 0, stream, shares, scratch, d_bias, d_weight);
}

cudaError_t SquaredNorms(cudaStream_t stream, const NormTable& table, double* scratch) {
  const int64_t grid = table.chunks < kMaxGrid ? table.chunks : kMaxGrid;
  const cudaError_t error =
      Launch(NormPartialKernel, LaunchShape{static_cast<uint32_t>(grid), kElementThreads}, 0,
             stream, table, scratch);
  if (error != cudaSuccess) return error;
  return Launch(NormTotalKernel, LaunchShape{static_cast<uint32_t>(table.count), kElementThreads},
                0, stream, table, scratch);
}

#define STAGECOACH_INSTANTIATE(T)                                                                \
  template cudaError_t ColumnSum(cudaStream_t, const T*, float*, int64_t, int64_t, float*);      \
  template cudaError_t LayerNormBackwardWeight(cudaStream_t, LayerNormShape, const T*, const T*, \
                                               const float*, const float*, float*, float*, float*)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
