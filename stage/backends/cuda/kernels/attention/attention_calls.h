// Attention of both operations by own kernels on a card.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_CALLS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_CALLS_H_

#include "stage/backends/attention_form.h"
#include "stage/backends/cuda/kernel_backend.h"

namespace stagecoach::cuda {

// Heads that are too wide are noted as the job's error, and nothing is launched.
void RunAttention(KernelBackend& backend, const char* what, const AttentionForm& form,
                  const AttentionInputs& inputs, const Tensor& out, const Tensor& log_sum_exp);
void RunAttentionGradient(KernelBackend& backend, const char* what, const AttentionForm& form,
                          const AttentionInputs& inputs, const AttentionGradientTensors& tensors);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_CALLS_H_
