// cross_attention: multi-head attention of the rows of one sequence to the columns of another. q
// [rows, heads * head_width] has the queries, kv [columns, 2 * key_heads * head_width] the keys of
// all key heads and then the values. Query head h reads key head h / (heads / key_heads). keys
// ids[n] says how many columns exist, 1 to `columns` (operations/attention/attention_keys.h). Every
// row attends to all of them. Scores are scaled by 1 / sqrt(head_width). Outputs: out [rows, heads
// * head_width], and log_sum_exp [heads, rows] of the scaled scores. For sample s, query head h,
// row r and column c, dropout takes this element of the stream:
//   ((s * heads + h) * rows + r) * columns + c
// cross_attention_gradient: d_out, q, kv, keys, out, log_sum_exp -> d_q, d_kv. Columns that do not
// exist have zeros in d_kv.
#ifndef STAGECOACH_OPERATIONS_ATTENTION_CROSS_ATTENTION_H_
#define STAGECOACH_OPERATIONS_ATTENTION_CROSS_ATTENTION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "operations/value_type.h"

namespace stagecoach {

struct CrossAttentionAttributes {
  int64_t heads = 1;
  double dropout = 0;     // rate for the probabilities
  int64_t draw = 0;       // number of the layer's stream; taken at rate 0 too
  int64_t key_heads = 0;  // 0: as many as heads
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("heads", heads, 1);
    visit.Rate("dropout", dropout);
    visit.Count("draw", draw, 0);
    visit.Count("key_heads", key_heads, 0);
  }
};

struct CrossHeads {
  int64_t rows = 0, columns = 0;
  int64_t heads = 0, key_heads = 0;
  int64_t head_width = 0;
};
// Errors: INVALID_ARGUMENT saying what would be right.
absl::StatusOr<CrossHeads> CheckCrossHeads(const CrossAttentionAttributes& attributes,
                                           const ValueType& q, const ValueType& kv);
// The heads of checked types.
CrossHeads CrossHeadsOf(const CrossAttentionAttributes& attributes, const ValueType& q,
                        const ValueType& kv);

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_ATTENTION_CROSS_ATTENTION_H_
