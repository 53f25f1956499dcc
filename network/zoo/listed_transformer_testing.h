// For tests: a transformer as a list of layers with an encoder.
#ifndef STAGECOACH_NETWORK_ZOO_LISTED_TRANSFORMER_TESTING_H_
#define STAGECOACH_NETWORK_ZOO_LISTED_TRANSFORMER_TESTING_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "network/layers/attention.h"
#include "network/layers/cross_attention.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/zoo/sequence.h"
#include "network/zoo/transformer.h"

namespace stagecoach {

// With norms in front, unclipped logits, all matrices tied or none.
inline SequenceSpec ListedTransformer(const TransformerSpec& spec) {
  CHECK(spec.norm == TransformerNorm::kPre && spec.logit_clip == 0);
  CHECK(spec.tie != TransformerTie::kTargetOutput);
  const LayerSpec norm = LayerNormSpec{};
  const auto residual = [&](const LayerSpec& branch) -> LayerSpec {
    std::vector<LayerSpec> inner = {norm, branch};
    if (spec.dropout > 0) inner.push_back(DropoutSpec{.rate = spec.dropout});
    return ResidualSpec{std::move(inner)};
  };
  const auto attention = [&](bool causal) {
    return residual(AttentionSpec{.heads = spec.heads,
                                  .dropout = spec.dropout,
                                  .head_width = spec.head_width,
                                  .bias = spec.bias,
                                  .causal = causal});
  };
  const LayerSpec embedding =
      EmbeddingSpec{.dropout = spec.dropout,
                    .sinusoidal = spec.positions == TransformerPositions::kSinusoidal,
                    .scaled = true};
  const LayerSpec cross = residual(CrossAttentionSpec{.heads = spec.heads,
                                                      .head_width = spec.head_width,
                                                      .dropout = spec.dropout,
                                                      .bias = spec.bias});
  const LayerSpec mlp = residual(MlpSpec{.hidden = spec.hidden == 0 ? 4 * spec.width : spec.hidden,
                                         .dropout = spec.dropout,
                                         .bias = spec.bias,
                                         .relu = spec.activation == TransformerActivation::kRelu});
  SequenceSpec list{.width = spec.width, .vocabulary = spec.vocabulary};
  list.tied_embeddings = spec.tie == TransformerTie::kAll;
  list.source_context = spec.source_context;
  list.target_context = spec.target_context;
  list.encoder = {embedding};
  for (int64_t i = 0; i < spec.encoder_layers; ++i) {
    list.encoder.push_back(attention(/*causal=*/false));
    list.encoder.push_back(mlp);
  }
  list.encoder.push_back(norm);
  list.layers = {embedding};
  for (int64_t i = 0; i < spec.decoder_layers; ++i) {
    list.layers.push_back(attention(/*causal=*/true));
    list.layers.push_back(cross);
    list.layers.push_back(mlp);
  }
  list.layers.push_back(norm);
  list.layers.push_back(LinearSpec{.out = spec.vocabulary, .bias = false});
  return list;
}

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_LISTED_TRANSFORMER_TESTING_H_
