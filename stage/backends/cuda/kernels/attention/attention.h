// Attention by own kernels on the card, of both operations (stage/backends/attention_form.h). T:
// float or Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

struct AttentionKernelShape {
  int64_t sequences, rows, columns, heads, key_heads, head_width;
  int64_t query_stride, key_stride;  // from row to row
  DropoutRule rule;                  // threshold 0: no dropout
  PhiloxStream random;
  bool full;            // no causal mask
  bool cross;           // rows and columns are of two sequences
  const int32_t* keys;  // the operand; null: every column exists
};
// The first of all queries, keys and values.
template <typename T>
struct AttentionPointers {
  T *queries, *keys, *values;
};
template <typename T>
cudaError_t Attention(cudaStream_t stream, const AttentionKernelShape& shape,
                      const AttentionPointers<const T>& in, T* out, float* log_sum_exp);
template <typename T>
cudaError_t AttentionBackward(cudaStream_t stream, const AttentionKernelShape& shape,
                              const T* d_out, const AttentionPointers<const T>& in, const T* out,
                              const float* log_sum_exp, const AttentionPointers<T>& d);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_H_
