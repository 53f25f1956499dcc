// Long sums in two stages: fixed shares to partial sums, the partial sums in ascending order. Which
// share is whose depends on the shape alone, so the order of every addition is fixed.
#include "stage/backends/cuda/column_sums.cuh"
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/packs.cuh"
#include "stage/backends/cuda/tables.cuh"

namespace stagecoach::cuda {
namespace {

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

// The elements themselves.
template <typename T>
struct RowTerm {
  const T* dy;
  int64_t width;
  bool wide;
  __device__ __forceinline__ Floats<kPack<T>> operator()(int64_t row, int64_t column) const {
    return LoadFloats<kPack<T>>(dy + row * width, column, 0, width, wide);
  }
};

}  // namespace

cudaError_t OrderedTotal(cudaStream_t stream, const double* partial, int64_t count,
                         double* result) {
  return Launch(OrderedTotalKernel, LaunchShape{1, kElementThreads}, 0, stream, partial, count,
                result);
}

template <typename T>
cudaError_t ColumnSum(cudaStream_t stream, const T* dy, float* d_bias, int64_t rows,
                      int64_t columns, float* scratch) {
  const RowTerm<T> term = {dy, columns, RowsAligned<T>(columns, dy)};
  return SumTerms<T>(stream, rows, columns, term, d_bias, scratch);
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

template cudaError_t ColumnSum(cudaStream_t, const float*, float*, int64_t, int64_t, float*);
template cudaError_t ColumnSum(cudaStream_t, const Bf16*, float*, int64_t, int64_t, float*);

}  // namespace stagecoach::cuda
