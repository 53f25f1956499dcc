// Long sums in two stages: fixed shares to partial sums, the partial sums in ascending order. Which
// share is whose depends on the shape alone, so the order of every addition is fixed.
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {
namespace {

struct ColumnShares {
  int64_t rows, columns, chunks, rows_per_chunk;
};

// Partial sums of dy, and of dy * xhat if kNorm, for 32 columns and one chunk of rows. Lane l of 8
// takes rows l, l + 8, ...; the lanes are added in order.
template <bool kNorm>
__global__ void ColumnPartialKernel(ColumnShares s, const float* dy, const float* x,
                                    const float* mean, const float* rstd, float* sums,
                                    float* norm_sums) {
  __shared__ float lane_sum[kColumnLanes][kColumnThreads];
  __shared__ float lane_norm[kColumnLanes][kColumnThreads];
  const int64_t column_blocks = (s.columns + kColumnThreads - 1) / kColumnThreads;
  const int64_t chunk = blockIdx.x / column_blocks;
  const int in_block = static_cast<int>(threadIdx.x) % kColumnThreads;
  const int lane = static_cast<int>(threadIdx.x) / kColumnThreads;
  const int64_t column = blockIdx.x % column_blocks * kColumnThreads + in_block;
  const int64_t first = chunk * s.rows_per_chunk;
  const int64_t end = first + s.rows_per_chunk < s.rows ? first + s.rows_per_chunk : s.rows;
  float sum = 0.0f, norm = 0.0f;
  if (column < s.columns) {
    for (int64_t row = first + lane; row < end; row += kColumnLanes) {
      const float g = dy[row * s.columns + column];
      sum += g;
      if (kNorm) norm += g * ((x[row * s.columns + column] - mean[row]) * rstd[row]);
    }
  }
  lane_sum[lane][in_block] = sum;
  if (kNorm) lane_norm[lane][in_block] = norm;
  __syncthreads();
  if (lane != 0 || column >= s.columns) return;
  for (int other = 1; other < kColumnLanes; ++other) {
    sum += lane_sum[other][in_block];
    if (kNorm) norm += lane_norm[other][in_block];
  }
  sums[chunk * s.columns + column] = sum;
  if (kNorm) norm_sums[chunk * s.columns + column] = norm;
}

// target adds the partial sums of its column, chunks in ascending order.
__global__ void ColumnTotalKernel(ColumnShares s, const float* sums, float* target) {
  for (int64_t column = GlobalThread(); column < s.columns; column += GlobalThreads()) {
    float sum = 0.0f;
    for (int64_t chunk = 0; chunk < s.chunks; ++chunk) sum += sums[chunk * s.columns + column];
    target[column] += sum;
  }
}

__global__ void NormPartialKernel(const float* x, int64_t n, int64_t per_block, double* partial) {
  __shared__ double shared[32];
  const int64_t first = blockIdx.x * per_block;
  const int64_t end = first + per_block < n ? first + per_block : n;
  double sum = 0.0;
  for (int64_t i = first + threadIdx.x; i < end; i += blockDim.x) {
    const double value = x[i];
    sum += value * value;
  }
  sum = BlockSum(sum, shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// One block: thread t adds elements t, t + 256, ..., then the threads are added in a fixed tree.
__global__ void OrderedTotalKernel(const double* partial, int64_t count, double* result) {
  __shared__ double shared[32];
  double sum = 0.0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += partial[i];
  sum = BlockSum(sum, shared);
  if (threadIdx.x == 0) *result = sum;
}

}  // namespace

cudaError_t OrderedTotal(cudaStream_t stream, const double* partial, int64_t count,
                         double* result) {
  return Launch(OrderedTotalKernel, LaunchShape{1, kElementThreads}, 0, stream, partial, count,
                result);
}

cudaError_t ColumnSum(cudaStream_t stream, const float* dy, float* d_bias, int64_t rows,
                      int64_t columns, float* scratch) {
  const ColumnSumPlan plan = PlanColumnSum(rows, columns, 1);
  const ColumnShares shares = {rows, columns, plan.chunks, plan.rows_per_chunk};
  const cudaError_t error = Launch(ColumnPartialKernel<false>, plan.partial, 0, stream, shares, dy,
                                   nullptr, nullptr, nullptr, scratch, nullptr);
  if (error != cudaSuccess) return error;
  return Launch(ColumnTotalKernel, plan.total, 0, stream, shares, scratch, d_bias);
}

cudaError_t LayerNormBackwardWeight(cudaStream_t stream, LayerNormShape shape, const float* dy,
                                    const float* x, const float* mean, const float* rstd,
                                    float* d_weight, float* d_bias, float* scratch) {
  const ColumnSumPlan plan = PlanColumnSum(shape.rows, shape.width, 2);
  const ColumnShares shares = {shape.rows, shape.width, plan.chunks, plan.rows_per_chunk};
  float* const norm_sums = scratch + plan.chunks * shape.width;
  cudaError_t error = Launch(ColumnPartialKernel<true>, plan.partial, 0, stream, shares, dy, x,
                             mean, rstd, scratch, norm_sums);
  if (error == cudaSuccess) {
    error = Launch(ColumnTotalKernel, plan.total, 0, stream, shares, norm_sums, d_weight);
  }
  if (error != cudaSuccess) return error;
  return Launch(ColumnTotalKernel, plan.total, 0, stream, shares, scratch, d_bias);
}

cudaError_t SquaredNorm(cudaStream_t stream, const float* x, int64_t n, double* result,
                        double* scratch) {
  const NormPlan plan = PlanNorm(n);
  const cudaError_t error =
      Launch(NormPartialKernel, plan.partial, 0, stream, x, n, plan.elements_per_block, scratch);
  if (error != cudaSuccess) return error;
  return OrderedTotal(stream, scratch, plan.partial.grid, result);
}

}  // namespace stagecoach::cuda
