// attention: causal multi-head self-attention with both projections. Parameters: qkv.weight [3*width, width],
// qkv.bias, proj.weight [width, width], proj.bias.
#ifndef STAGECOACH_NETWORK_LAYERS_ATTENTION_H_
#define STAGECOACH_NETWORK_LAYERS_ATTENTION_H_

#include <cstdint>

#include "network/limits.h"

namespace stagecoach {

struct AttentionSpec {
  static constexpr const char* kKind = "attention";
  int64_t heads = 0;   // must divide the width
  double dropout = 0;  // of the attention probabilities
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("heads", heads, 1, kMaxWidth);
    visit.Rate("dropout", dropout);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_ATTENTION_H_
