// Norm of heads on the card (operations/attention/head_norm.h). T: float or Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_HEAD_NORM_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_HEAD_NORM_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

// A row has `queries` heads of queries, then `keys` heads of keys, then `keys` heads of values.
struct HeadNormShape {
  int64_t rows, queries, keys, head_width;
};
template <typename T>
cudaError_t HeadNorm(cudaStream_t stream, HeadNormShape shape, const T* x, const float* query,
                     const float* key, float epsilon, T* y, float* rstd);
template <typename T>
cudaError_t HeadNormInputGradient(cudaStream_t stream, HeadNormShape shape, const T* dy, const T* x,
                                  const float* query, const float* key, const float* rstd, T* dx);
// scratch: the larger one of PlanColumnSum(rows * queries, head_width, 1, .) and the same of the
// keys.
template <typename T>
cudaError_t HeadNormWeightGradient(cudaStream_t stream, HeadNormShape shape, const T* dy,
                                   const T* x, const float* rstd, float* d_query, float* d_key,
                                   float* scratch);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_HEAD_NORM_H_
