// attention: multi-head attention of qkv (operations/attention/packed_heads.h). It is causal,
// unless `full`: then every row attends to every other. Scores are scaled by 1 / sqrt(head_width).
// With fewer key heads than heads, several query heads read one key head. Outputs: out [context,
// heads * head_width], and log_sum_exp [heads, context] of the scaled scores. The gradient reads
// log_sum_exp (Dao et al., 2205.14135). For sample s, query head h, row r and column c, dropout
// takes this element of the stream:
//   ((s * heads + h) * context + r) * context + c
// A second operand, `keys`, says which columns exist (operations/attention/attention_keys.h):
//   full    ids[n], the sample's length. Rows attend to the columns below it. Rows from it on are
//           padding: they have zeros in both outputs, and neither take nor give a gradient.
//   causal  ids[n, context], the first column that each row attends to: the first row of its
//           document. So documents of one context do not see each other.
// attention_gradient: d_out, qkv, out, log_sum_exp [, keys] -> d_qkv. The gradient of a key head is
// the sum over its query heads.
#ifndef STAGECOACH_OPERATIONS_ATTENTION_ATTENTION_H_
#define STAGECOACH_OPERATIONS_ATTENTION_ATTENTION_H_

#include <cstdint>

namespace stagecoach {

struct AttentionAttributes {
  int64_t heads = 1;
  double dropout = 0;     // rate for the probabilities
  int64_t draw = 0;       // number of the layer's stream; taken at rate 0 too
  int64_t key_heads = 0;  // 0: as many as heads
  bool full = false;      // rows attend to later ones too
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("heads", heads, 1);
    visit.Rate("dropout", dropout);
    visit.Count("draw", draw, 0);
    visit.Count("key_heads", key_heads, 0);
    visit.Flag("full", full);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_ATTENTION_ATTENTION_H_
