// Attention to a pool of rows on the card (operations/attention/cached_attention.h). T: float or
// Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_CACHED_ATTENTION_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_CACHED_ATTENTION_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

// rows: of all samples.
struct CachedAttentionShape {
  int64_t rows, heads, key_heads, head_width, context, pool;
};
template <typename T>
struct CachedAttentionArrays {
  const T* qkv;
  const int32_t *places, *positions, *history;
  T *keys, *values, *out;
};
// Two launches: a row may see any row that the first one writes.
template <typename T>
cudaError_t CachedAttention(cudaStream_t stream, CachedAttentionShape shape,
                            const CachedAttentionArrays<T>& arrays);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_CACHED_ATTENTION_H_
