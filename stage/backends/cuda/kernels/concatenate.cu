#include "stage/backends/cuda/kernels/concatenate.h"

#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {
namespace {

template <typename T>
__global__ void CopyColumnsKernel(ColumnCopy s, const T* x, T* y) {
  for (int64_t i = GlobalThread(); i < s.rows * s.columns; i += GlobalThreads()) {
    const int64_t row = i / s.columns, column = i % s.columns;
    y[row * s.to_stride + column] = x[row * s.from_stride + column];
  }
}

}  // namespace

template <typename T>
cudaError_t CopyColumns(cudaStream_t stream, ColumnCopy shape, const T* x, T* y) {
  return Launch(CopyColumnsKernel<T>, ElementLaunch(shape.rows * shape.columns), 0, stream, shape,
                x, y);
}

template cudaError_t CopyColumns(cudaStream_t, ColumnCopy, const float*, float*);
template cudaError_t CopyColumns(cudaStream_t, ColumnCopy, const Bf16*, Bf16*);

}  // namespace stagecoach::cuda
