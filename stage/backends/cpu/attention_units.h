// The pieces that attention is cut into on the cpu, with the scores of a block of queries in the
// cache.
// Threads:   pure functions; scratch is the caller's.
// Units and shapes: elements.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_ATTENTION_UNITS_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_ATTENTION_UNITS_H_

#include <cstdint>

#include "base/numbers/bfloat16.h"
#include "base/numbers/random.h"

namespace stagecoach::cpu {

// One (sequence, head) of the forward pass. In the backward pass one (sequence, key head) with the
// `group` heads that read it. T is float or Bfloat16.
template <typename T>
struct AttentionUnit {
  const T* qkv;        // the sequence's first row, at the (first) head's first query column
  int64_t qkv_stride;  // from row to row
  int64_t keys;        // from qkv to the key head's keys
  int64_t values;      // from qkv to the key head's values
  int64_t group;       // heads; their queries and outputs lie side by side
  int64_t out_stride;  // width
  int64_t context, head_width;
  double dropout;
  RandomStream stream;
  int64_t first_element;  // in the stream: (sequence * heads + first head) * context * context
  bool full;              // no causal mask

  // The row attends to rows [0, visible(row)).
  int64_t visible(int64_t row) const { return full ? context : row + 1; }
};
// scratch: as many floats as AttentionScratch says (operations/attention/attention_scratch.h).
void AttentionForwardUnit(const AttentionUnit<float>& unit, float* out, float* log_sum_exp,
                          float* scratch);
void AttentionForwardUnit(const AttentionUnit<Bfloat16>& unit, Bfloat16* out, float* log_sum_exp,
                          float* scratch);
// d_qkv is laid out as qkv; d_out and out as the forward's out; log_sum_exp [group, context].
void AttentionBackwardUnit(const AttentionUnit<float>& unit, const float* d_out, const float* out,
                           const float* log_sum_exp, float* d_qkv, float* scratch);
void AttentionBackwardUnit(const AttentionUnit<Bfloat16>& unit, const Bfloat16* d_out,
                           const Bfloat16* out, const float* log_sum_exp, Bfloat16* d_qkv,
                           float* scratch);

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_ATTENTION_UNITS_H_
