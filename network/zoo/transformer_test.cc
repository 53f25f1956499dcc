// A transformer's layers, names, shapes and number of parameters; its initial values; its refusals.
#include "network/zoo/transformer.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/golden_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/limits.h"
#include "network/lists/lists.h"
#include "network/names/network_text.h"
#include "network/network_kinds.h"
#include "network/objectives/cross_entropy.h"
#include "network/passes/head_chunks.h"
#include "network/passes/later_rows.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

TransformerSpec Small() {
  return {.vocabulary = 40,
          .source_context = 4,
          .target_context = 3,
          .width = 8,
          .hidden = 12,
          .heads = 2,
          .encoder_layers = 1,
          .decoder_layers = 1};
}
TransformerSpec SmallPostNorm() {
  TransformerSpec spec = Small();
  spec.norm = TransformerNorm::kPost;
  spec.positions = TransformerPositions::kLearned;
  spec.tie = TransformerTie::kNone;
  spec.dropout = 0.1;
  spec.activation = TransformerActivation::kGelu;
  spec.logit_clip = 30;
  spec.bias = false;
  return spec;
}
// T(layers, hidden, heads) of GPipe, 1811.06965, section 5.
TransformerSpec Multilingual(int64_t layers, int64_t hidden, int64_t heads) {
  return {.vocabulary = 64'000,
          .source_context = 256,
          .target_context = 256,
          .width = 1024,
          .hidden = hidden,
          .heads = heads,
          .head_width = 64,
          .encoder_layers = layers,
          .decoder_layers = layers};
}

TEST(Transformer, TextStaysAsItIs) {
  ExpectGolden("network_text_transformer.txt", CanonicalNetworkText(ExpandedOf(Small())));
  ExpectGolden("network_text_transformer_post_norm.txt",
               CanonicalNetworkText(ExpandedOf(SmallPostNorm())));
}

TEST(Transformer, ListsStayAsTheyAre) {
  const Network pre = ExpandedOf(Small()), post = ExpandedOf(SmallPostNorm());
  ExpectGolden("lists/transformer_embedding.txt", FormatLists(*pre.layers[0].lists));
  ExpectGolden("lists/transformer_source_attention.txt", FormatLists(*pre.layers[1].lists));
  ExpectGolden("lists/transformer_mlp.txt", FormatLists(*pre.layers[2].lists));
  ExpectGolden("lists/transformer_cross_attention.txt", FormatLists(*pre.layers[6].lists));
  ExpectGolden("lists/transformer_cross_attention_post_norm.txt",
               FormatLists(*post.layers[5].lists));
  ExpectGolden("lists/transformer_clipped_output.txt", FormatLists(*post.layers.back().lists));
}

TEST(Transformer, IsCutBetweenItsBranches) {
  const Network network = ExpandedOf(Small());
  EXPECT_THAT(LabelsOf(network), ElementsAre("embedding", "residual(layer_norm, attention)",
                                             "residual(layer_norm, mlp)", "layer_norm", "embedding",
                                             "residual(layer_norm, attention)",
                                             "residual(layer_norm, cross_attention)",
                                             "residual(layer_norm, mlp)", "layer_norm", "linear"));
  EXPECT_THAT(
      LabelsOf(ExpandedOf(SmallPostNorm())),
      ElementsAre("embedding", "residual(attention), layer_norm", "residual(mlp), layer_norm",
                  "embedding", "residual(attention), layer_norm",
                  "residual(cross_attention), layer_norm", "residual(mlp), layer_norm",
                  "linear, clip"));
}

// The memory goes along from the encoder's norm to the last layer that reads it.
TEST(Transformer, SendsTheMemoryBesideTheDecodersRows) {
  const int64_t source = 4 * 4 * 8, target = 4 * 3 * 8;
  EXPECT_THAT(CutBytes(ExpandedOf(Small())),
              ElementsAre(source, source, source, source, source + target, source + target, target,
                          target, target, 4 * 3 * 40));
}

TEST(Transformer, LoadsEachInputWhereALayerReadsIt) {
  const Network network = ExpandedOf(Small());
  const WireId source = network.InputNamed("source"), length = network.InputNamed("source_length"),
               tokens = network.InputNamed("tokens"), targets = network.InputNamed("targets");
  EXPECT_THAT(WiresOfCell(network, 0, 4).loaded, ElementsAre(source, length));
  EXPECT_THAT(WiresOfCell(network, 4, 6).loaded, ElementsAre(tokens));
  EXPECT_THAT(WiresOfCell(network, 6, 10).loaded, ElementsAre(length));
  EXPECT_EQ(network.objective.targets, targets);
  EXPECT_EQ(network.wire(length).type, (ValueType{Element::kIds, Leading::kSamples, {}}));
  EXPECT_EQ(network.input(length).classes, 5) << "of lengths up to 4";
  EXPECT_EQ(network.targets(), 3);
  EXPECT_EQ(network.classes(), 40);
}

// With width d, attention width n, feed-forward H and vocabulary V. Packed or not, an attention has
// four matrices n d, three biases n and one d, and its residual a norm of 2 d. A feed-forward has 2
// d H + H + d and its norm. An encoder and a decoder layer together: three attentions, two
// feed-forwards. Beside them stand two norms of 2 d, and one matrix V d, or two if the source's
// embedding is one of its own. Sinusoids have no parameters.
int64_t ParametersByHand(const TransformerSpec& spec, int64_t matrices) {
  const int64_t d = spec.width, n = spec.heads * spec.head_width, h = spec.hidden;
  const int64_t pair = 3 * (4 * n * d + 3 * n + d + 2 * d) + 2 * (2 * d * h + h + d + 2 * d);
  return spec.encoder_layers * pair + 2 * 2 * d + matrices * spec.vocabulary * d;
}

// GPipe's 0.4, 1.3, 1.3, 3 and 6 billion. Without biases and norms, and with two matrices of the
// vocabulary, they are 12 n d L + 4 d H L + 2 V d: 0.41, 1.24, 1.24, 3.08 and 6.04 billion.
TEST(Transformer, HasTheParametersOfGPipesNetworks) {
  struct Row {
    TransformerSpec spec;
    int64_t all_tied, target_tied;
  };
  const Row rows[] = {
      {Multilingual(6, 8192, 16), 342'609'920, 408'145'920},
      {Multilingual(24, 8192, 16), 1'173'819'392, 1'239'355'392},
      {Multilingual(12, 16384, 32), 1'173'635'072, 1'239'171'072},
      {Multilingual(32, 16384, 32), 3'020'460'032, 3'085'996'032},
      {Multilingual(64, 16384, 32), 5'975'379'968, 6'040'915'968},
  };
  for (const Row& row : rows) {
    TransformerSpec spec = row.spec;
    EXPECT_EQ(ParametersOf(ExpandedOf(spec)), row.all_tied);
    EXPECT_EQ(ParametersByHand(spec, 1), row.all_tied);
    spec.tie = TransformerTie::kTargetOutput;
    EXPECT_EQ(ParametersOf(ExpandedOf(spec)), row.target_tied);
    EXPECT_EQ(ParametersByHand(spec, 2), row.target_tied);
  }
}

TEST(Transformer, OfTheFirstPaperHasAboutItsParameters) {
  // Base, of which its authors say 65 million: 37,000 word pieces.
  const TransformerSpec base{.vocabulary = 37'000,
                             .source_context = 512,
                             .target_context = 512,
                             .width = 512,
                             .heads = 8,
                             .encoder_layers = 6,
                             .decoder_layers = 6,
                             .norm = TransformerNorm::kPost};
  EXPECT_NEAR(static_cast<double>(ParametersOf(ExpandedOf(base))), 65e6, 3e6);
}

TEST(Transformer, SharesTheMatricesThatItIsAskedTo) {
  const auto owners = [](TransformerTie tie) {
    TransformerSpec spec = Small();
    spec.tie = tie;
    const Network network = ExpandedOf(spec);
    std::vector<std::string> names;
    for (const size_t layer : {size_t{0}, size_t{4}, network.layers.size() - 1}) {
      names.push_back(network.layers[layer].parameters.front().tied_to);
    }
    return names;
  };
  EXPECT_THAT(owners(TransformerTie::kAll),
              ElementsAre("", "model/0000/token.weight", "model/0000/token.weight"));
  EXPECT_THAT(owners(TransformerTie::kTargetOutput),
              ElementsAre("", "", "model/0004/token.weight"));
  EXPECT_THAT(owners(TransformerTie::kNone), ElementsAre("", "", ""));
}

TEST(Transformer, BeginsWithTheVarianceOfItsInputs) {
  TransformerSpec spec = Small();
  spec.encoder_layers = 3;
  spec.decoder_layers = 2;  // layers 0 to 7, and 8 to 14
  const Network standard = ExpandedOf(spec);
  spec.init = TransformerInit::kDepthScaled;
  const Network scaled = ExpandedOf(spec);
  for (const Network* network : {&standard, &scaled}) {
    for (const char* name :
         {"model/0000/token.weight", "model/0001/attention.qkv.weight",
          "model/0001/attention.proj.weight", "model/0010/cross_attention.kv.weight"}) {
      EXPECT_DOUBLE_EQ(StddevOf(*network, name), 1 / std::sqrt(8)) << name;
    }
  }
  const std::string encoder = "model/0002/mlp.", decoder = "model/0011/mlp.";
  EXPECT_DOUBLE_EQ(StddevOf(standard, encoder + "up.weight"), 1 / std::sqrt(8));
  EXPECT_DOUBLE_EQ(StddevOf(standard, encoder + "down.weight"), 1 / std::sqrt(12));
  EXPECT_DOUBLE_EQ(StddevOf(scaled, encoder + "up.weight"), 1 / std::sqrt(8) / 3);
  EXPECT_DOUBLE_EQ(StddevOf(scaled, encoder + "down.weight"), 1 / std::sqrt(12) / 3);
  EXPECT_DOUBLE_EQ(StddevOf(scaled, decoder + "up.weight"), 1 / std::sqrt(8) / 2);
}

// The last layer is one plain linear then: its logits need not be whole (head_chunks.h).
TEST(Transformer, GoesByChunksOfLogitsUnlessTheyAreClipped) {
  TransformerSpec spec = Small();
  EXPECT_TRUE(HeadGoesByChunks(ExpandedOf(spec)));
  spec.logit_clip = 30;
  EXPECT_FALSE(HeadGoesByChunks(ExpandedOf(spec)));
}

TEST(Transformer, TakesAnObjectiveThatIgnoresPadding) {
  NetworkSpec spec = Small();
  spec.objective = CrossEntropySpec{.label_smoothing = 0.1, .ignore_index = 0};
  EXPECT_EQ(ExpandedOf(spec).objective.ignored, 0);
}

TEST(Transformer, RefusesSizesThatDoNotFitByTheFieldOfTheJob) {
  const auto refusal = [](void (*spoil)(TransformerSpec&)) {
    TransformerSpec spec = Small();
    spoil(spec);
    return std::string(ExpandNetwork(spec).status().message());
  };
  const std::string path = "model.transformer.";
  EXPECT_EQ(refusal([](TransformerSpec& s) { s.heads = 3; }),
            path + "heads: 3; must divide the width 8, or give a head_width");
  EXPECT_EQ(refusal([](TransformerSpec& s) { s.heads = 3, s.head_width = 5; }), "");
  EXPECT_EQ(refusal([](TransformerSpec& s) { s.heads = 16, s.head_width = 65536; }),
            path +
                "head_width: 65536; must be <= 21845 with 16 heads: 3 * heads * head_width may "
                "be 1048576");
  EXPECT_EQ(refusal([](TransformerSpec& s) { s.width = 9, s.heads = 3; }),
            path +
                "width: 9; must be even with positions: sinusoidal; give an even one, or "
                "positions: learned");
  EXPECT_EQ(refusal([](TransformerSpec& s) { s.decoder_layers = 0; }),
            path + "decoder_layers: 0; must be >= 1");
  EXPECT_EQ(refusal([](TransformerSpec& s) { s.logit_clip = -1; }),
            path + "logit_clip: -1; must be 0 or a number in [0.001, 1e+06]");
  EXPECT_EQ(refusal([](TransformerSpec& s) { s.source_context = 0; }),
            path + "source_context: 0; must be >= 1");
}

// As many as there may be layers in all, and no more.
TEST(Transformer, MayHaveAllLayersThatANetworkMayHave) {
  TransformerSpec spec = Small();
  spec.encoder_layers = spec.decoder_layers = TransformerSpec::kMostLayers;
  EXPECT_LE(static_cast<int64_t>(ExpandedOf(spec).layers.size()), kMaxLayers);
}

TEST(Transformer, LooksAheadInItsSourceAlone) {
  EXPECT_EQ(ReaderOfLaterRows(ExpandedOf(Small())),
            "layer 1, residual(layer_norm, attention), by attention without a causal mask");
}

}  // namespace
}  // namespace stagecoach
