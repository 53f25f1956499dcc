// Columns of matrices on the card (operations/concatenate.h). T: float or Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_CONCATENATE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_CONCATENATE_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

// Copies `columns` elements of each row. x and y point to the first; strides are from row to row.
struct ColumnCopy {
  int64_t rows, columns, from_stride, to_stride;
};
template <typename T>
cudaError_t CopyColumns(cudaStream_t stream, ColumnCopy shape, const T* x, T* y);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_CONCATENATE_H_
