#include "stage/backends/cuda/kernels/linear.h"

#include "stage/backends/cuda/packs.cuh"

namespace stagecoach::cuda {
namespace {

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

}  // namespace

template <typename T>
cudaError_t AddBias(cudaStream_t stream, const T* bias, T* y, int64_t rows, int64_t columns) {
  const int64_t row_packs = (columns + kPack<T> - 1) / kPack<T>;
  return Launch(AddBiasKernel<T>, ElementLaunch(rows * row_packs), 0, stream, bias, y, rows,
                columns, RowsAligned<T>(columns, bias, y));
}

#define STAGECOACH_INSTANTIATE(T) \
  template cudaError_t AddBias(cudaStream_t, const T*, T*, int64_t, int64_t)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
