// cross_attention: multi-head attention of a decoder's rows to an encoder's output, with its
// projections. It stands in the decoder of a list with an encoder. The rows attend to all rows of
// the encoder's output that exist, and not to padding. Parameters, with n = heads * head_width:
//   q.weight [n, width], q.bias, kv.weight [2 * n, width of the encoder's output], kv.bias,
//   proj.weight [width, n], proj.bias; no biases with `no_bias`
// 2 * n is at most kMaxHidden.
#ifndef STAGECOACH_NETWORK_LAYERS_CROSS_ATTENTION_H_
#define STAGECOACH_NETWORK_LAYERS_CROSS_ATTENTION_H_

#include <cstdint>

#include "network/limits.h"

namespace stagecoach {

struct CrossAttentionSpec {
  static constexpr const char* kKind = "cross_attention";
  int64_t heads = 0;
  int64_t head_width = 0;  // 0: width / heads
  double dropout = 0;      // rate for the attention probabilities
  bool bias = true;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("heads", heads, 1, kMaxWidth);
    visit.Count("head_width", head_width, 0, kMaxWidth);
    visit.Rate("dropout", dropout);
    bool no_bias = !bias;  // what a job leaves out is false
    visit.Flag("no_bias", no_bias);
    bias = !no_bias;
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_CROSS_ATTENTION_H_
