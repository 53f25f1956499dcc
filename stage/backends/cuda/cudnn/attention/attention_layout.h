// The project's attention tensors as views, without copies, for a library that takes [batch, heads,
// rows, columns] with strides. If a whole micro-batch would need more workspace than allowed, the
// work is cut here too. Pure values, so that they are tested without a card.
// Units and shapes: strides and offsets in elements. qkv is [sequences * context, 3 * width] with
//            queries, keys, values side by side. out is [sequences * context, width]; log_sum_exp
//            is [sequences, heads, context].
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_LAYOUT_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_LAYOUT_H_

#include <cstdint>

#include "devices/card/attention_slices.h"
#include "stage/backends/attention_shape.h"
#include "stage/backends/cuda/cudnn/tensor_layout.h"

namespace stagecoach::cudnn {

// The key of the plan cache: nothing else decides about a plan, hence about the bits.
struct AttentionProblem {
  int64_t sequences = 0, context = 0, heads = 0, head_width = 0;

  int64_t width() const { return heads * head_width; }
  friend bool operator==(const AttentionProblem&, const AttentionProblem&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const AttentionProblem& p) {
    return H::combine(std::move(h), p.sequences, p.context, p.heads, p.head_width);
  }
};
AttentionProblem ProblemOf(const AttentionShape& shape);  // CHECKs that heads divide the width

// The slice that is the whole problem. A slice's log_sum_exp is always packed; cuDNN before 9.26
// assumes that in the backward pass.
inline AttentionSlice WholeOf(const AttentionProblem& problem) {
  return {problem.sequences, problem.heads};
}
// The memory forecast has the same cut: LargestAttentionSlice.
AttentionSlice ChooseSlice(const AttentionProblem& problem, int64_t bytes);

struct AttentionLayouts {    // of sequence, head, row, column
  TensorLayout packed;       // queries, keys, values and their gradients, each from its own start
  TensorLayout out;          // and its gradient
  TensorLayout log_sum_exp;  // one column
};
AttentionLayouts LayoutsOf(const AttentionProblem& problem, const AttentionSlice& slice);

// Offsets at which a slice begins in the whole tensors.
struct SliceStart {
  int64_t queries = 0, keys = 0, values = 0, out = 0, log_sum_exp = 0;
};
SliceStart StartOf(const AttentionProblem& problem, int64_t sequence, int64_t head);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_LAYOUT_H_
