// head_norm: rms norm of each query head and each key head of qkv
// (operations/attention/packed_heads.h) by itself, over its head_width elements. There is one
// weight for all query heads, and one for all key heads. Values stay (Henry et al., 2010.04245,
// "Query-Key Normalization", as Qwen3 has it).
// Inputs: qkv, query_weight, key_weight (float32 [head_width]). Outputs: y as qkv; rstd (float32
// [context, heads + key_heads]), 1 / sqrt(mean of x^2 + epsilon) of each head.
//
// head_norm_input_gradient: dy, qkv, query_weight, key_weight, rstd -> d_qkv. For each head it is
//   as in rms_norm_input_gradient (operations/norms/rms_norm.h). For the values it is dy.
// head_norm_weight_gradient: dy, qkv, rstd; adds to d_query_weight and d_key_weight the sums over
//   rows and heads of dy * x * rstd.
#ifndef STAGECOACH_OPERATIONS_ATTENTION_HEAD_NORM_H_
#define STAGECOACH_OPERATIONS_ATTENTION_HEAD_NORM_H_

#include <cstdint>

#include "operations/attributes.h"

namespace stagecoach {

struct HeadNormAttributes {
  int64_t heads = 1;
  int64_t key_heads = 0;  // 0: as many as heads
  double epsilon = 1e-6;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("heads", heads, 1);
    visit.Count("key_heads", key_heads, 0);
    visit.Between("epsilon", epsilon, kMinEpsilon, kMaxEpsilon);
  }
};

// For both gradients.
struct HeadNormGradientAttributes {
  int64_t heads = 1;
  int64_t key_heads = 0;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("heads", heads, 1);
    visit.Count("key_heads", key_heads, 0);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_ATTENTION_HEAD_NORM_H_
