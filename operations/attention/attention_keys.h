// Attention keys: the operand `keys` of attention and cross_attention, ids that say which columns
// exist. Kernels take an id outside of its range as the nearest one inside, so that none reads
// beyond its operands. The cost of scores is here too.
// Threads:   pure functions.
// Errors:    INVALID_ARGUMENT saying what would be right.
#ifndef STAGECOACH_OPERATIONS_ATTENTION_ATTENTION_KEYS_H_
#define STAGECOACH_OPERATIONS_ATTENTION_ATTENTION_KEYS_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "operations/operation.h"

namespace stagecoach {

// Columns that exist, 1 to `columns`.
inline int64_t ColumnsThatExist(int32_t key, int64_t columns) {
  return std::clamp<int64_t>(key, 1, columns);
}
// First column that a row of causal attention attends to, 0 to `row`.
inline int64_t FirstColumn(int32_t key, int64_t row) { return std::clamp<int64_t>(key, 0, row); }

// `shape`: of one sample.
absl::Status CheckAttentionKeys(const ValueType& keys, Shape shape);

// Cost of `scores` scores in each head. Scores with padding count too: types do not tell lengths.
struct ScoreFlops {
  double products = 1;               // in units of the forward's two
  int64_t softmax = 0, dropout = 0;  // of a score
};
Cost AttentionCost(int64_t scores, int64_t heads, int64_t head_width, const ScoreFlops& flops,
                   int64_t samples);

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_ATTENTION_ATTENTION_KEYS_H_
