// attention: multi-head self-attention with both projections. It is causal unless `causal` is
// false, as it must be in an encoder: there no row attends to padding.
// Parameters, with n = heads * head_width and k = key_heads * head_width:
//   qkv.weight [n + 2*k, width], qkv.bias, proj.weight [width, n], proj.bias
//   without `bias` no biases, or with `qkv_bias` qkv.bias alone
//   with qk_norm query_norm.weight and key_norm.weight [head_width]
// n + 2*k is at most kMaxHidden.
#ifndef STAGECOACH_NETWORK_LAYERS_ATTENTION_H_
#define STAGECOACH_NETWORK_LAYERS_ATTENTION_H_

#include <cstdint>

#include "network/layers/rotary_scaling.h"
#include "network/limits.h"
#include "operations/attributes.h"

namespace stagecoach {

struct AttentionSpec {
  static constexpr const char* kKind = "attention";
  int64_t heads = 0;
  double dropout = 0;     // rate for the attention probabilities
  int64_t key_heads = 0;  // heads of keys and values, each for as many queries; 0: as many as heads
  int64_t head_width = 0;   // 0: width / heads
  double rotary_theta = 0;  // base of the angles of rotary positions; 0: none
  bool qk_norm = false;     // rms norm of each query and key head, epsilon 1e-6
  bool bias = true;
  bool causal = true;     // no row attends to those behind it
  bool qkv_bias = false;  // of queries, keys and values, also without `bias`
  RotaryScalingFields scaling;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("heads", heads, 1, kMaxWidth);
    visit.Rate("dropout", dropout);
    visit.Count("key_heads", key_heads, 0, kMaxWidth);
    visit.Count("head_width", head_width, 0, kMaxWidth);
    visit.ZeroOrBetween("rotary_theta", rotary_theta, kMinTheta, kMaxTheta);
    visit.Flag("qk_norm", qk_norm);
    bool no_bias = !bias;  // what a job leaves out is false
    visit.Flag("no_bias", no_bias);
    bias = !no_bias;
    visit.Flag("causal", causal);
    visit.Flag("qkv_bias", qkv_bias);
    scaling.Visit(visit);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_ATTENTION_H_
