// cross_attention: multi-head attention of a layer's rows to those of another wire, with its
// projections. It is no kind that a job lists, as a list gives each layer one wire. Parameters,
// with n = heads * head_width:
//   q.weight [n, width], q.bias, kv.weight [2 * n, memory's width], kv.bias, proj.weight [width,
//   n], proj.bias; biases unless `bias` is false
#ifndef STAGECOACH_NETWORK_LAYERS_CROSS_ATTENTION_H_
#define STAGECOACH_NETWORK_LAYERS_CROSS_ATTENTION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "network/layer_builder.h"

namespace stagecoach {

struct CrossAttentionSpec {
  int64_t heads = 0;
  int64_t head_width = 0;
  double dropout = 0;  // rate for the attention probabilities
  bool bias = true;
};

// The rows of x attend to the first `length` rows of `memory`
// (operations/attention/cross_attention.h).
absl::StatusOr<ValueId> WriteCrossAttention(const CrossAttentionSpec& spec, ValueId x,
                                            ValueId memory, ValueId length, const LayerPlace& place,
                                            LayerBuilder& builder);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_CROSS_ATTENTION_H_
