// attention: causal multi-head attention of qkv [context, 3 * width], queries, keys and values side by
// side; scores scaled by 1 / sqrt(width / heads). Outputs: out [context, width] and log_sum_exp
// [heads, context] of the scaled scores, which the gradient reads (Dao et al., 2205.14135).
#ifndef STAGECOACH_OPERATIONS_ATTENTION_H_
#define STAGECOACH_OPERATIONS_ATTENTION_H_

#include <cstdint>

namespace stagecoach {

struct AttentionAttributes {
  int64_t heads = 1;
  double dropout = 0;  // of the probabilities
  int64_t draw = 0;    // which of the layer's streams; taken at rate 0 too
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("heads", heads, 1);
    visit.Rate("dropout", dropout);
    visit.Count("draw", draw, 0);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_ATTENTION_H_
