// Attention of both operations by plain loops (stage/backends/attention_form.h).
#ifndef STAGECOACH_STAGE_BACKENDS_REFERENCE_KERNELS_ATTENTION_H_
#define STAGECOACH_STAGE_BACKENDS_REFERENCE_KERNELS_ATTENTION_H_

#include "stage/backends/attention_form.h"

namespace stagecoach::reference {

void RunAttention(const AttentionForm& form, const AttentionInputs& inputs, const Tensor& out,
                  const Tensor& log_sum_exp);
void RunAttentionGradient(const AttentionForm& form, const AttentionInputs& inputs,
                          const AttentionGradientTensors& tensors);

}  // namespace stagecoach::reference

#endif  // STAGECOACH_STAGE_BACKENDS_REFERENCE_KERNELS_ATTENTION_H_
