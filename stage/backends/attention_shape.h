// AttentionShape: the attention of one micro-batch as a device computes it
// (operations/attention/attention.h).
// Threads: pure functions.
#ifndef STAGECOACH_STAGE_BACKENDS_ATTENTION_SHAPE_H_
#define STAGECOACH_STAGE_BACKENDS_ATTENTION_SHAPE_H_

#include <cstdint>

#include "base/numbers/random.h"
#include "operations/attention/attention.h"
#include "operations/attention/packed_heads.h"
#include "stage/backends/kernel.h"

namespace stagecoach {

// Query head h reads key head h / (heads / keys()). Dropout (rate > 0) acts on the probabilities.
struct AttentionShape {
  int64_t sequences = 0, context = 0, heads = 0, width = 0;  // width: of the queries of all heads
  double dropout = 0.0;
  RandomStream stream;
  int64_t key_heads = 0;  // 0: as many as heads; divides them
  bool full = false;      // no causal mask

  int64_t keys() const { return key_heads == 0 ? heads : key_heads; }
  int64_t head_width() const { return width / heads; }
  // The row attends to rows [0, visible(row)).
  int64_t visible(int64_t row) const { return full ? context : row + 1; }
  int64_t packed_width() const { return (heads + 2 * keys()) * head_width(); }
};

// `qkv`: the type of queries, keys and values together; the gradient has them as second input.
inline AttentionShape ShapeOfAttention(const AttentionAttributes& attributes, const ValueType& qkv,
                                       const KernelContext& context) {
  const PackedHeads packed = PackedHeadsOf(qkv, attributes.heads, attributes.key_heads);
  return {.sequences = context.run.sequences,
          .context = packed.context,
          .heads = packed.heads,
          .width = packed.query_width(),
          .dropout = attributes.dropout,
          .stream = context.Stream(attributes.draw),
          .key_heads = packed.key_heads == packed.heads ? 0 : packed.key_heads,
          .full = attributes.full};
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_ATTENTION_SHAPE_H_
