// Attention by own kernels on the card (operations/attention/attention.h). T: float or Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

struct AttentionKernelShape {
  int64_t sequences, context, heads, key_heads, head_width;
  DropoutRule rule;  // threshold 0: no dropout
  PhiloxStream random;
  bool full;  // no causal mask
};
template <typename T>
cudaError_t Attention(cudaStream_t stream, const AttentionKernelShape& shape, const T* qkv, T* out,
                      float* log_sum_exp);
template <typename T>
cudaError_t AttentionBackward(cudaStream_t stream, const AttentionKernelShape& shape,
                              const T* d_out, const T* qkv, const T* out, const float* log_sum_exp,
                              T* d_qkv);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_H_
