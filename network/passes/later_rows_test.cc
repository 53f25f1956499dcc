#include "network/passes/later_rows.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/attention.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/layers/swiglu.h"
#include "network/zoo/gpt.h"
#include "network/zoo/llama.h"
#include "network/zoo/sequence.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

std::string ReaderIn(std::vector<LayerSpec> inner) {
  SequenceSpec spec{.width = 8, .context = 4, .vocabulary = 32};
  spec.layers = {EmbeddingSpec{.sinusoidal = true, .scaled = true}};
  for (LayerSpec& layer : inner) spec.layers.push_back(std::move(layer));
  spec.layers.push_back(LinearSpec{.out = 32});
  return ReaderOfLaterRows(ExpandedOf(spec));
}

// A held-out loss of 1.62 where 2.13 is honest: the network read its targets.
TEST(LaterRows, ALayerThatLooksAheadIsNamed) {
  EXPECT_EQ(ReaderIn({AttentionSpec{.heads = 2, .causal = false}}),
            "layer 1, attention, by attention without a causal mask");
  EXPECT_THAT(ReaderIn({ReluSpec{}, ResidualSpec{{LayerNormSpec{},
                                                  AttentionSpec{.heads = 2, .causal = false}}}}),
              testing::MatchesRegex("layer 2, residual.*, by attention without a causal mask"));
  EXPECT_EQ(ReaderIn({GroupNormSpec{.groups = 2}}), "layer 1, group_norm, by group_norm");
}

TEST(LaterRows, LanguageModelsLookBackOnly) {
  EXPECT_EQ(
      ReaderOfLaterRows(ExpandedOf(GptSpec{
          .layers = 2, .width = 8, .heads = 2, .context = 4, .vocabulary = 32, .dropout = 0.1})),
      "");
  EXPECT_EQ(ReaderOfLaterRows(ExpandedOf(LlamaSpec{.layers = 2,
                                                   .width = 8,
                                                   .heads = 2,
                                                   .key_heads = 1,
                                                   .hidden = 16,
                                                   .context = 4,
                                                   .vocabulary = 32,
                                                   .qk_norm = true})),
            "");
  EXPECT_EQ(ReaderIn({AttentionSpec{.heads = 2, .rotary_theta = 1e4}, MlpSpec{.hidden = 16},
                      BatchNormSpec{}, RmsNormSpec{}, GeluSpec{.exact = true}, SiluSpec{},
                      DropoutSpec{.rate = 0.5}, SwigluSpec{.hidden = 16},
                      MlpSpec{.hidden = 16, .relu = true}}),
            "");
}

}  // namespace
}  // namespace stagecoach
