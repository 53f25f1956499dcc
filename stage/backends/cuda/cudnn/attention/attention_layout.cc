#include "stage/backends/cuda/cudnn/attention/attention_layout.h"

#include "base/errors/check.h"

namespace stagecoach::cudnn {
AttentionProblem ProblemOf(const AttentionShape& shape) {
  CHECK(shape.heads > 0 && shape.width % shape.heads == 0) << "heads must divide the width";
  return {shape.sequences, shape.context, shape.heads, shape.width / shape.heads};
}

AttentionSlice ChooseSlice(const AttentionProblem& p, int64_t bytes) {
  return LargestAttentionSlice(p.sequences, p.context, p.heads, bytes);
}

AttentionLayouts LayoutsOf(const AttentionProblem& p, const AttentionSlice& slice) {
  const int64_t row = 3 * p.width();
  return {
      .packed = {.dims = {slice.sequences, slice.heads, p.context, p.head_width},
                 .strides = {p.context * row, p.head_width, row, 1}},
      .out = {.dims = {slice.sequences, slice.heads, p.context, p.head_width},
              .strides = {p.context * p.width(), p.head_width, p.width(), 1}},
      .log_sum_exp = {.dims = {slice.sequences, slice.heads, p.context, 1},
                      .strides = {slice.heads * p.context, p.context, 1, 1}},
  };
}

SliceStart StartOf(const AttentionProblem& p, int64_t sequence, int64_t head) {
  const int64_t row = sequence * p.context, column = head * p.head_width;
  const int64_t queries = row * 3 * p.width() + column;
  return {.queries = queries,
          .keys = queries + p.width(),
          .values = queries + 2 * p.width(),
          .out = row * p.width() + column,
          .log_sum_exp = (sequence * p.heads + head) * p.context};
}

}  // namespace stagecoach::cudnn
