// The pieces that attention is cut into on the cpu, with the scores of a block of queries in the
// cache.
// Threads:   pure functions; scratch is the caller's.
// Units and shapes: elements.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_ATTENTION_UNITS_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_ATTENTION_UNITS_H_

#include <cstdint>

#include "base/numbers/bfloat16.h"
#include "base/numbers/random.h"
#include "stage/backends/attention_form.h"

namespace stagecoach::cpu {

// One (sequence, head) of the forward pass. In the backward pass one (sequence, key head) with the
// `group` heads that read it. T is float or Bfloat16.
template <typename T>
struct AttentionUnit {
  const T* queries;  // the sequence's first row, at the (first) head's first query column
  int64_t query_stride;
  const T *keys, *values;  // of the sequence's first column, at the key head's
  int64_t key_stride;
  int64_t group;  // heads; their queries and outputs lie side by side
  int64_t out_stride;
  AttentionExtent extent;  // no other row or column is read or written
  int64_t head_width;
  int64_t statistics;  // log_sum_exp has so many a head
  double dropout;
  RandomStream stream;
  int64_t first_element, row_elements;  // in the stream: of the unit, and from row to row
};
// scratch: as many floats as AttentionScratch says (operations/attention/attention_scratch.h).
void AttentionForwardUnit(const AttentionUnit<float>& unit, float* out, float* log_sum_exp,
                          float* scratch);
void AttentionForwardUnit(const AttentionUnit<Bfloat16>& unit, Bfloat16* out, float* log_sum_exp,
                          float* scratch);
// `d` is laid out as queries, keys and values; d_out and out as the forward's out.
void AttentionBackwardUnit(const AttentionUnit<float>& unit, const float* d_out, const float* out,
                           const float* log_sum_exp, const AttentionParts<float>& d,
                           float* scratch);
void AttentionBackwardUnit(const AttentionUnit<Bfloat16>& unit, const Bfloat16* d_out,
                           const Bfloat16* out, const float* log_sum_exp,
                           const AttentionParts<Bfloat16>& d, float* scratch);

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_ATTENTION_UNITS_H_
