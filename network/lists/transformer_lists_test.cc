// Lists of the blocks of a Qwen3, which has all that a Llama has, and of an attention with Qwen2's
// biases and Llama 3.1's positions, as golden texts.
#include <utility>

#include "base/golden_testing.h"
#include "gtest/gtest.h"
#include "network/layer_builder.h"
#include "network/layers/attention.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/layers/swiglu.h"
#include "network/lists/lists.h"

namespace stagecoach {
namespace {

const AttentionSpec kQwen{.heads = 4,
                          .key_heads = 2,
                          .head_width = 6,
                          .rotary_theta = 1e6,
                          .qk_norm = true,
                          .bias = false};

LayerLists OfBranch(LayerSpec layer) {
  LayerBuilder builder(1, kInitStddev);
  const ValueId x = builder.writer().Input(ActivationType({8, 16}));
  const auto y =
      BuildLayer(ResidualSpec{{RmsNormSpec{}, std::move(layer)}}, x, {.path = "layer"}, builder);
  CHECK_OK(y.status());
  return Differentiate(builder.Finish(*y)->graph);
}

// The rotation happens in the memory of what it turns, forward and backward, and the norm takes the
// trunk's sum.
TEST(Lists, OfAQwenBlock) {
  ExpectGolden("lists/qwen_attention.txt", FormatLists(OfBranch(kQwen)));
  ExpectGolden("lists/qwen_feed_forward.txt", FormatLists(OfBranch(SwigluSpec{40})));
}

TEST(Lists, OfAnAttentionWithBiasesAndScaledPositions) {
  const AttentionSpec attention{.heads = 4,
                                .key_heads = 2,
                                .head_width = 6,
                                .rotary_theta = 5e5,
                                .bias = false,
                                .qkv_bias = true,
                                .scaling = {.form = RotaryScalingForm::kLlama3,
                                            .factor = 8,
                                            .low_frequency_factor = 1,
                                            .high_frequency_factor = 4,
                                            .original_context = 6}};
  ExpectGolden("lists/scaled_attention.txt", FormatLists(OfBranch(attention)));
}

}  // namespace
}  // namespace stagecoach
