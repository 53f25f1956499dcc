// llama: the layers in order:
//   embedding without positions
//   per block residual(rms_norm, attention with rotary positions and shared key heads)
//             and residual(rms_norm, swiglu)
//   rms_norm; linear head
// No layer has a bias, but with qkv_bias queries, keys and values. L blocks give 2L + 3 layers. With
// tied_embeddings the head is the embedding's tokens. Llama 2 and 3 (2307.09288, 2407.21783) and
// Mistral (2310.06825) have this form, with qkv_bias Qwen2 (2407.10671), with qk_norm Qwen3
// (2505.09388).
#ifndef STAGECOACH_NETWORK_ZOO_LLAMA_H_
#define STAGECOACH_NETWORK_ZOO_LLAMA_H_

#include <cstdint>

#include "network/layers/rotary_scaling.h"
#include "network/limits.h"
#include "operations/attributes.h"

namespace stagecoach {

struct LlamaSpec {
  static constexpr const char* kNetwork = "llama";
  int64_t layers = 0, width = 0, heads = 0;
  int64_t key_heads = 0;   // 0: as many as heads
  int64_t head_width = 0;  // 0: width / heads
  int64_t hidden = 0, context = 0, vocabulary = 0;
  double rotary_theta = 1e4, epsilon = 1e-5;
  bool qk_norm = false;
  bool tied_embeddings = false;
  bool documents = false;  // attention stays within documents
  bool qkv_bias = false;
  RotaryScalingFields scaling;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("layers", layers, 1, (kMaxLayers - 3) / 2);
    visit.Count("width", width, 1, kMaxWidth);
    visit.Count("heads", heads, 1, kMaxWidth);
    visit.Count("key_heads", key_heads, 0, kMaxWidth);
    visit.Count("head_width", head_width, 0, kMaxWidth);
    visit.Count("hidden", hidden, 1, kMaxHidden);
    visit.Count("context", context, 1, kMaxContext);
    visit.Count("vocabulary", vocabulary, 2, kMaxVocabulary);
    visit.Between("rotary_theta", rotary_theta, kMinTheta, kMaxTheta);
    visit.Between("epsilon", epsilon, kMinEpsilon, kMaxEpsilon);
    visit.Flag("qk_norm", qk_norm);
    visit.Flag("tied_embeddings", tied_embeddings);
    visit.Flag("documents", documents);
    visit.Flag("qkv_bias", qkv_bias);
    scaling.Visit(visit);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_LLAMA_H_
