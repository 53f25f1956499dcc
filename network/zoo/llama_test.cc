// What weights of a llama hang on: layers, names, shapes and their number.
#include "network/zoo/llama.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/golden_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/attention.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/layers/swiglu.h"
#include "network/names/network_text.h"
#include "network/network_kinds.h"
#include "network/zoo/sequence.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

LlamaSpec SmallLlama() {
  return {.layers = 2,
          .width = 16,
          .heads = 4,
          .key_heads = 2,
          .head_width = 6,
          .hidden = 24,
          .context = 8,
          .vocabulary = 40,
          .rotary_theta = 1e6,
          .epsilon = 1e-6,
          .qk_norm = true};
}

TEST(Llama, TextStaysAsItIs) {
  ExpectGolden("network_text_llama.txt", CanonicalNetworkText(ExpandedOf(SmallLlama())));
}

// Biases as Qwen2's, and positions as Llama 3.1's.
LlamaSpec BiasedAndScaled() {
  LlamaSpec spec = SmallLlama();
  spec.layers = 1;
  spec.qk_norm = false;
  spec.qkv_bias = true;
  spec.scaling = {.form = RotaryScalingForm::kLlama3,
                  .factor = 8,
                  .low_frequency_factor = 1,
                  .high_frequency_factor = 4,
                  .original_context = 6};
  return spec;
}

TEST(Llama, TextHasBiasesAndScaling) {
  ExpectGolden("network_text_llama_scaled.txt",
               CanonicalNetworkText(ExpandedOf(BiasedAndScaled())));
}

// The lists of a network with `spec`'s fields, and of the same layers by hand.
void ExpectAsListedByHand(const LlamaSpec& spec, const AttentionSpec& attention) {
  const RmsNormSpec norm{1e-6};
  SequenceSpec list{.width = 16, .context = 8, .vocabulary = 40};
  list.layers.push_back(EmbeddingSpec{.position = false});
  for (int block = 0; block < spec.layers; ++block) {
    list.layers.push_back(ResidualSpec{{norm, attention}});
    list.layers.push_back(ResidualSpec{{norm, SwigluSpec{.hidden = 24}}});
  }
  list.layers.push_back(norm);
  list.layers.push_back(LinearSpec{.out = 40, .bias = false});
  const Network by_hand = ExpandedOf(list), zoo = ExpandedOf(spec);
  EXPECT_EQ(CanonicalNetworkText(by_hand), CanonicalNetworkText(zoo));
  ASSERT_EQ(by_hand.layers.size(), zoo.layers.size());
  for (size_t i = 0; i < zoo.layers.size(); ++i) {
    EXPECT_EQ(by_hand.layers[i].parameters, zoo.layers[i].parameters);
    EXPECT_EQ(FormatLists(*by_hand.layers[i].lists), FormatLists(*zoo.layers[i].lists));
  }
}

TEST(Llama, EqualsTheSameLayersListedByHand) {
  AttentionSpec attention{.heads = 4,
                          .key_heads = 2,
                          .head_width = 6,
                          .rotary_theta = 1e6,
                          .qk_norm = true,
                          .bias = false};
  ExpectAsListedByHand(SmallLlama(), attention);
  attention.qk_norm = false;
  attention.qkv_bias = true;
  attention.scaling = BiasedAndScaled().scaling;
  ExpectAsListedByHand(BiasedAndScaled(), attention);
}

// Embedding and head v d each; a block d (h + 2 k) w for queries, keys and values, h w d behind
// them, 3 d f for the feed-forward, two norms d; the last norm d. With qk_norm two norms w a block.
TEST(Llama, HasTheParametersOfItsShape) {
  const int64_t d = 16, h = 4, k = 2, w = 6, f = 24, v = 40;
  const int64_t block = d * (h + 2 * k) * w + h * w * d + 3 * d * f + 2 * d;
  EXPECT_EQ(ParametersOf(ExpandedOf(SmallLlama())), 2 * v * d + 2 * (block + 2 * w) + d);
  // Llama 3 8B, of which its authors say 8.03 billion, and Qwen3-8B without tied embeddings, 8.19.
  const LlamaSpec llama3{.layers = 32,
                         .width = 4096,
                         .heads = 32,
                         .key_heads = 8,
                         .hidden = 14336,
                         .context = 8192,
                         .vocabulary = 128256,
                         .rotary_theta = 5e5};
  EXPECT_EQ(ParametersOf(ExpandedOf(llama3)), 8'030'261'248);
  const LlamaSpec qwen3{.layers = 36,
                        .width = 4096,
                        .heads = 32,
                        .key_heads = 8,
                        .head_width = 128,
                        .hidden = 12288,
                        .context = 8192,
                        .vocabulary = 151936,
                        .rotary_theta = 1e6,
                        .epsilon = 1e-6,
                        .qk_norm = true};
  EXPECT_EQ(ParametersOf(ExpandedOf(qwen3)), 8'190'735'360);
  // Qwen2-7B, of which its authors say 7.62 billion.
  const LlamaSpec qwen2{.layers = 28,
                        .width = 3584,
                        .heads = 28,
                        .key_heads = 4,
                        .hidden = 18944,
                        .context = 8192,
                        .vocabulary = 152064,
                        .rotary_theta = 1e6,
                        .epsilon = 1e-6,
                        .qkv_bias = true};
  EXPECT_EQ(ParametersOf(ExpandedOf(qwen2)), 7'615'616'512);
}

TEST(Llama, WithDocumentsAttentionAloneReadsWhereTheyBegin) {
  LlamaSpec spec{.layers = 2, .width = 8, .heads = 2, .hidden = 16, .context = 4, .vocabulary = 9};
  const Network without = *ExpandNetwork(spec);
  EXPECT_FALSE(without.InputNamed("document_starts").valid());
  spec.documents = true;
  const Network network = *ExpandNetwork(spec);
  const WireId starts = network.InputNamed("document_starts");
  ASSERT_TRUE(starts.valid());
  EXPECT_EQ(network.wire(starts).type, network.wire(network.InputNamed("tokens")).type);
  for (const NetworkLayer& layer : network.layers) {
    const bool attends = layer.label == "residual(rms_norm, attention)";
    EXPECT_EQ(std::count(layer.inputs.begin(), layer.inputs.end(), starts), attends ? 1 : 0)
        << layer.label;
    for (const Call& call : layer.graph->calls) {
      if (call.operation != "attention") continue;
      EXPECT_EQ(call.inputs.size(), 2u);
    }
  }
}

TEST(Sequence, DocumentsNeedCausalAttention) {
  const auto refusal = [](const LayerSpec& layer) {
    const SequenceSpec spec{.width = 8,
                            .context = 4,
                            .vocabulary = 9,
                            .layers = {EmbeddingSpec{}, layer, LinearSpec{.out = 9}},
                            .documents = true};
    return std::string(ExpandNetwork(spec).status().message());
  };
  EXPECT_EQ(refusal(AttentionSpec{.heads = 2}), "");
  EXPECT_THAT(refusal(AttentionSpec{.heads = 2, .causal = false}),
              testing::HasSubstr("model.sequence.layers[1].attention.causal: false"));
  EXPECT_THAT(refusal(LayerNormSpec{}), testing::HasSubstr("model.sequence.documents: true"));
}

TEST(Llama, RefusesHeadsThatDoNotFitByTheFieldOfTheJob) {
  const auto refusal = [](void (*spoil)(LlamaSpec&)) {
    LlamaSpec spec = SmallLlama();
    spoil(spec);
    return std::string(ExpandNetwork(spec).status().message());
  };
  EXPECT_EQ(refusal([](LlamaSpec& s) { s.heads = 3, s.head_width = 0; }),
            "model.llama.heads: 3; must divide the width 16, or give a head_width");
  EXPECT_EQ(refusal([](LlamaSpec& s) { s.key_heads = 3; }),
            "model.llama.key_heads: 3; must divide the 4 heads");
  EXPECT_EQ(refusal([](LlamaSpec& s) { s.head_width = 5; }),
            "model.llama.head_width: 5; must be even, for rotary positions: give an even "
            "head_width or other heads");
  EXPECT_EQ(refusal([](LlamaSpec& s) { s.hidden = 0; }), "model.llama.hidden: 0; must be >= 1");
  EXPECT_EQ(refusal([](LlamaSpec& s) { s.rotary_theta = 0; }),
            "model.llama.rotary_theta: 0; must be a number in [1, 1e+12]");
  EXPECT_EQ(refusal([](LlamaSpec& s) { s.scaling.form = RotaryScalingForm::kLinear; }),
            "model.llama.rotary_factor: 0; must be given with rotary_scaling: linear");
  EXPECT_EQ(
      refusal([](LlamaSpec& s) { s.scaling.original_context = 8192; }),
      "model.llama.rotary_original_context: 8192; must be left out with rotary_scaling: none");
}

}  // namespace
}  // namespace stagecoach
