// Attention of both operations in units (stage/backends/cpu/attention_units.h).
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_KERNELS_ATTENTION_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_KERNELS_ATTENTION_H_

#include "stage/backends/attention_form.h"
#include "stage/backends/cpu/cpu_backend.h"

namespace stagecoach::cpu {

void RunAttention(CpuBackend& backend, const AttentionForm& form, const AttentionInputs& inputs,
                  const Tensor& out, const Tensor& log_sum_exp);
void RunAttentionGradient(CpuBackend& backend, const AttentionForm& form,
                          const AttentionInputs& inputs, const AttentionGradientTensors& tensors);

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_KERNELS_ATTENTION_H_
