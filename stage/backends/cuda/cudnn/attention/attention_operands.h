// The operands of attention on a card, for own kernels and for a library.
// Units and shapes: qkv and d_qkv [n, packed_width()], out and d_out [n, width],
//            n = sequences * context; log_sum_exp [sequences * heads, context].
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_OPERANDS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_OPERANDS_H_

#include "stage/backends/attention_shape.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

struct AttentionForwardArgs {
  AttentionShape shape;
  Tensor qkv;
  Tensor out, log_sum_exp;
};
struct AttentionBackwardArgs {
  AttentionShape shape;
  Tensor d_out, qkv, out, log_sum_exp;
  Tensor d_qkv;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_OPERANDS_H_
