// What no operation is: fills, conversions; and what a product left undone. Bound by memory: threads stride over the elements in packs
// of 16 bytes.
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/packs.cuh"

namespace stagecoach::cuda {
namespace {

template <typename T>
__global__ void FillKernel(T* y, float value, int64_t n, bool wide) {
  constexpr int kCount = kPack<T>;
  Floats<kCount> values;
#pragma unroll
  for (int j = 0; j < kCount; ++j) values.at[j] = value;
  for (int64_t i = GlobalThread() * kCount; i < n; i += GlobalThreads() * kCount) {
    StoreFloats(values, y, i, 0, n, wide);
  }
}

// A pack is of one row: the last one of a row may be short.
template <typename T>
__global__ void AddBiasKernel(const T* bias, T* y, int64_t rows, int64_t columns, bool wide) {
  constexpr int kCount = kPack<T>;
  const int64_t row_packs = (columns + kCount - 1) / kCount;
  for (int64_t p = GlobalThread(); p < rows * row_packs; p += GlobalThreads()) {
    const int64_t row = p / row_packs, column = p % row_packs * kCount;
    T* const target = y + row * columns;
    Floats<kCount> values = LoadFloats<kCount>(target, column, 0, columns, wide);
    const Floats<kCount> added = LoadFloats<kCount>(bias, column, 0, columns, wide);
#pragma unroll
    for (int j = 0; j < kCount; ++j) values.at[j] += added.at[j];
    StoreFloats(values, target, column, 0, columns, wide);
  }
}

template <typename From, typename To>
__global__ void ConvertKernel(const From* x, To* y, int64_t n, bool wide) {
  constexpr int kCount = kPack<Bf16>;
  for (int64_t i = GlobalThread() * kCount; i < n; i += GlobalThreads() * kCount) {
    StoreFloats(LoadFloats<kCount>(x, i, 0, n, wide), y, i, 0, n, wide);
  }
}

}  // namespace

template <typename T>
cudaError_t Fill(cudaStream_t stream, T* y, float value, int64_t n) {
  return Launch(FillKernel<T>, ElementLaunch(n, kPack<T>), 0, stream, y, value, n, Aligned(y));
}

template <typename T>
cudaError_t AddBias(cudaStream_t stream, const T* bias, T* y, int64_t rows, int64_t columns) {
  const int64_t row_packs = (columns + kPack<T> - 1) / kPack<T>;
  return Launch(AddBiasKernel<T>, ElementLaunch(rows * row_packs), 0, stream, bias, y, rows,
                columns, RowsAligned<T>(columns, bias, y));
}

template <typename From, typename To>
cudaError_t Convert(cudaStream_t stream, const From* x, To* y, int64_t n) {
  return Launch(ConvertKernel<From, To>, ElementLaunch(n, kPack<Bf16>), 0, stream, x, y, n,
                Aligned(x, y));
}

#define STAGECOACH_INSTANTIATE(T)                              \
  template cudaError_t Fill(cudaStream_t, T*, float, int64_t); \
  template cudaError_t AddBias(cudaStream_t, const T*, T*, int64_t, int64_t)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE
template cudaError_t Convert(cudaStream_t, const float*, Bf16*, int64_t);
template cudaError_t Convert(cudaStream_t, const Bf16*, float*, int64_t);

}  // namespace stagecoach::cuda
