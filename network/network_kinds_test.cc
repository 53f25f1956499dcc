// Protects what checkpoints and random streams hang on: names, order, shapes and initial values.
#include "network/network_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/golden_testing.h"
#include "network/layers/activations.h"
#include "network/layers/attention.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/names/network_text.h"
#include "network/objective_kind.h"
#include "network/zoo/amoebanet/amoebanet.h"
#include "network/zoo/gpt.h"
#include "network/zoo/sequence.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

GptSpec SmallGpt(double dropout = 0) {
  return {.layers = 2, .width = 8, .heads = 2, .context = 4, .vocabulary = 16, .dropout = dropout};
}

Network Expanded(const NetworkSpec& spec) {
  const auto network = ExpandNetwork(spec);
  EXPECT_TRUE(network.ok()) << network.status();
  return network.ok() ? *network : Network{};
}

std::vector<std::string> Labels(const Network& network) {
  std::vector<std::string> labels;
  for (const NetworkLayer& layer : network.layers) labels.push_back(layer.label);
  return labels;
}

const ParameterSpec& Find(const Network& network, const std::string& name) {
  for (const NetworkLayer& layer : network.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (parameter.name == name) return parameter;
    }
  }
  static const ParameterSpec kNone;
  ADD_FAILURE() << "no parameter " << name;
  return kNone;
}

SequenceSpec List(std::vector<LayerSpec> layers) {
  return {.width = 8, .context = 4, .vocabulary = 16, .layers = std::move(layers)};
}

std::string ErrorOf(const SequenceSpec& list) {
  const auto network = ExpandNetwork(list);
  EXPECT_EQ(network.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(network.status().message());
}

TEST(NetworkKinds, AreFoundByTheirNames) {
  for (const NetworkKind* kind : AllNetworkKinds()) {
    EXPECT_EQ(FindNetworkKind(kind->name()).value(), kind) << kind->name();
  }
  EXPECT_EQ(FindNetworkKind("sequense").status().message(),
            "there is no network \"sequense\"; did you mean \"sequence\"?");
}

TEST(NetworkKinds, AnUnknownOneIsRefusedWithItsPlaceInTheJob) {
  NetworkSpec spec = SmallGpt();
  spec.kind = "gptt";
  const absl::Status status = ExpandNetwork(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "model: there is no network \"gptt\"; did you mean \"gpt\"?");
}

TEST(NetworkKinds, LayersAndFieldsThatAKindHasNotAreRefused) {
  NetworkSpec spec = SmallGpt();
  spec.layers = {GeluSpec{}};
  EXPECT_EQ(ExpandNetwork(spec).status().message(), "model.gpt: 1 layers; lists none");
  spec = SmallGpt();
  spec.encoder = {GeluSpec{}};
  EXPECT_EQ(ExpandNetwork(spec).status().message(),
            "model.gpt: 1 layers of an encoder; lists none");
  spec = SmallGpt();
  spec.attributes.Set("head", int64_t{2});
  EXPECT_EQ(ExpandNetwork(spec).status().message(),
            "model.gpt.head is not known; did you mean \"heads\"?");
}

TEST(Gpt, ExpandsToTwoResidualsABlock) {
  EXPECT_THAT(Labels(Expanded(SmallGpt())),
              ElementsAre("embedding", "residual(layer_norm, attention)",
                          "residual(layer_norm, mlp)", "residual(layer_norm, attention)",
                          "residual(layer_norm, mlp)", "layer_norm", "linear"));
}

TEST(Gpt, HasDropoutLayersOnlyWhereTheRateIsPositive) {
  const Network network = Expanded(SmallGpt(0.1));
  EXPECT_EQ(network.layers[1].label, "residual(layer_norm, attention, dropout)");
  EXPECT_EQ(network.layers[2].label, "residual(layer_norm, mlp, dropout)");
  EXPECT_EQ(network.layers[0].lists->forward.calls.back().call.operation, "dropout");
}

TEST(Gpt, TextStaysAsItIs) {
  // Manifests hold the digest of this text: changing it makes every checkpoint foreign.
  ExpectGolden("network_text_gpt.txt", CanonicalNetworkText(Expanded(SmallGpt())));
}

TEST(Gpt, InitialValuesAreGpt2s) {
  const Network network = Expanded(SmallGpt());
  const double branch = 0.02 / std::sqrt(2.0 * 2);
  EXPECT_EQ(Find(network, "model/0000/token.weight").init_stddev, 0.02);
  EXPECT_EQ(Find(network, "model/0001/attention.qkv.weight").init_stddev, 0.02);
  EXPECT_DOUBLE_EQ(Find(network, "model/0001/attention.proj.weight").init_stddev, branch);
  EXPECT_EQ(Find(network, "model/0002/mlp.up.weight").init_stddev, 0.02);
  EXPECT_DOUBLE_EQ(Find(network, "model/0002/mlp.down.weight").init_stddev, branch);
  EXPECT_EQ(Find(network, "model/0006/weight").init_stddev, 0.02);
  EXPECT_EQ(Find(network, "model/0001/layer_norm.weight").init, ParameterSpec::Init::kOnes);
  EXPECT_EQ(Find(network, "model/0001/layer_norm.bias").init, ParameterSpec::Init::kZeros);
  EXPECT_EQ(Find(network, "model/0002/mlp.up.bias").init, ParameterSpec::Init::kZeros);
}

TEST(Gpt, WeightDecayIsForMatricesOnly) {
  for (const NetworkLayer& layer : Expanded(SmallGpt()).layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      EXPECT_EQ(parameter.decay, parameter.shape.rank() == 2) << parameter.name;
    }
  }
}

// Table 1 of GPipe has 282.2M, 785.8M, 5.3B, 21.0B and 83.9B. 12 d d L + 13 d L + 2 V d + V gives
// them all: the output has a bias. Ours has none; it has positions and a last norm.
TEST(Gpt, HasTheParametersOfGPipesTransformers) {
  constexpr int64_t kWidth = 2048, kVocabulary = 32'000, kContext = 1024;
  const std::pair<int64_t, int64_t> rows[] = {{3, 284'248'064},
                                              {13, 787'830'784},
                                              {103, 5'320'075'264},
                                              {415, 21'031'856'128},
                                              {1663, 83'878'979'584}};
  for (const auto& [layers, parameters] : rows) {
    const Network network = Expanded(GptSpec{.layers = layers,
                                             .width = kWidth,
                                             .heads = 32,
                                             .context = kContext,
                                             .vocabulary = kVocabulary});
    EXPECT_EQ(ParametersOf(network), parameters) << layers;
    const int64_t of_paper = 12 * kWidth * kWidth * layers + 13 * kWidth * layers +
                             2 * kVocabulary * kWidth + kVocabulary;
    EXPECT_EQ(parameters, of_paper + kContext * kWidth + 2 * kWidth - kVocabulary) << layers;
  }
}

TEST(Gpt, NamesAscendWithTheLayersAndIndicesWithinThem) {
  GptSpec spec = SmallGpt();
  spec.layers = 60;  // layers with one to three digits
  const Network network = Expanded(spec);
  EXPECT_EQ(network.layers.size(), 2u * 60 + 3);
  for (size_t i = 0; i < network.layers.size(); ++i) {
    const NetworkLayer& layer = network.layers[i];
    EXPECT_EQ(layer.index, static_cast<int>(i));
    for (size_t p = 0; p < layer.parameters.size(); ++p) {
      EXPECT_EQ(layer.parameters[p].index, static_cast<int>(p));
      if (i == 0) continue;
      EXPECT_GT(layer.parameters[p].name, network.layers[i - 1].parameters[0].name);
    }
  }
}

TEST(Gpt, EqualsTheSameLayersListedByHand) {
  const LayerSpec dropout = DropoutSpec{0.1}, norm = LayerNormSpec{};
  SequenceSpec list = List({EmbeddingSpec{.dropout = 0.1}});
  for (int block = 0; block < 2; ++block) {
    const AttentionSpec attention{.heads = 2, .dropout = 0.1};
    list.layers.push_back(ResidualSpec{{norm, attention, dropout}});
    list.layers.push_back(ResidualSpec{{norm, MlpSpec{32}, dropout}});
  }
  list.layers.push_back(norm);
  list.layers.push_back(LinearSpec{.out = 16, .bias = false});
  const Network by_hand = Expanded(list), zoo = Expanded(SmallGpt(0.1));
  ASSERT_EQ(by_hand.layers.size(), zoo.layers.size());
  for (size_t i = 0; i < zoo.layers.size(); ++i) {
    EXPECT_EQ(by_hand.layers[i].parameters, zoo.layers[i].parameters);
    EXPECT_EQ(by_hand.layers[i].function, zoo.layers[i].function);
    EXPECT_EQ(FormatLists(*by_hand.layers[i].lists), FormatLists(*zoo.layers[i].lists));
    EXPECT_EQ(by_hand.layers[i].outputs, zoo.layers[i].outputs);
  }
}

// What a config.json of a GPT-2 may say otherwise: n_inner, layer_norm_epsilon, activation_function.
TEST(Gpt, HasNormsAndMlpsAsAsked) {
  GptSpec spec = SmallGpt();
  spec.hidden = 24;
  spec.epsilon = 1e-6;
  spec.exact_gelu = true;
  const Network network = Expanded(spec);
  EXPECT_EQ(network.layers[1].function, "residual(layer_norm:1e-06 attention:2)");
  EXPECT_EQ(network.layers[2].function, "residual(layer_norm:1e-06 mlp:24:exact_gelu)");
  EXPECT_EQ(network.layers[5].function, "layer_norm:1e-06");
  EXPECT_EQ(Find(network, "model/0002/mlp.up.weight").shape, (Shape{24, 8}));
  spec.epsilon = 0;
  EXPECT_EQ(ExpandNetwork(spec).status().message(),
            "model.gpt.epsilon: 0; must be a number in [1e-12, 1]");
}

TEST(CanonicalText, SeesHeadsButNotDropout) {
  const std::string text = CanonicalNetworkText(Expanded(SmallGpt()));
  EXPECT_EQ(CanonicalNetworkText(Expanded(SmallGpt(0.1))), text);
  GptSpec heads = SmallGpt();
  heads.heads = 4;
  EXPECT_NE(CanonicalNetworkText(Expanded(heads)), text);
  GptSpec context = SmallGpt();
  context.context = 5;
  EXPECT_NE(CanonicalNetworkText(Expanded(context)), text);
}

TEST(LayerList, NumbersTheSecondOfAKindInsideAResidual) {
  const Network network =
      Expanded(List({{EmbeddingSpec{}},
                     {ResidualSpec{{{LinearSpec{.out = 32}},
                                    {GeluSpec{}},
                                    {LinearSpec{.out = 8, .bias = false}},
                                    {ResidualSpec{{{LayerNormSpec{}}, {LinearSpec{.out = 8}}}}}}}},
                     {LinearSpec{.out = 16}}}));
  std::vector<std::string> names;
  for (const ParameterSpec& parameter : network.layers[1].parameters) {
    names.push_back(parameter.name);
  }
  EXPECT_THAT(
      names,
      ElementsAre("model/0001/linear.weight", "model/0001/linear.bias", "model/0001/linear2.weight",
                  "model/0001/residual.layer_norm.weight", "model/0001/residual.layer_norm.bias",
                  "model/0001/residual.linear.weight", "model/0001/residual.linear.bias"));
  EXPECT_EQ(network.layers[1].label,
            "residual(linear, gelu, linear, residual(layer_norm, linear))");
  EXPECT_EQ(network.wire(network.layers[2].inputs[0]).type.shape.back(), 8);
  EXPECT_EQ(network.wire(network.layers[2].outputs[0]).type.shape.back(), 16);
}

TEST(LayerList, ScalesProjectionsByTheNumberOfResiduals) {
  const Network network = Expanded(List({{EmbeddingSpec{}},
                                         {AttentionSpec{.heads = 2}},
                                         {ResidualSpec{{{MlpSpec{.hidden = 32}}}}},
                                         {LinearSpec{.out = 16}}}));
  EXPECT_EQ(Find(network, "model/0001/proj.weight").init_stddev, 0.02) << "outside of a residual";
  EXPECT_EQ(Find(network, "model/0002/mlp.down.weight").init_stddev, 0.02) << "blocks = 1/2";
}

TEST(LayerList, RefusesWhatDoesNotFitTogether) {
  const LayerSpec embedding{EmbeddingSpec{}}, head{LinearSpec{.out = 16}};
  EXPECT_EQ(ErrorOf(List({})), "model.sequence.layers (count): 0; must be >= 1");
  EXPECT_EQ(ErrorOf(List({head})),
            "model.sequence.layers[0]: linear; the first layer must be an embedding");
  EXPECT_THAT(ErrorOf(List({embedding, embedding, head})),
              StartsWith("model.sequence.layers[1]: embedding; allowed as the first layer only"));
  EXPECT_EQ(ErrorOf(List({embedding, {LinearSpec{.out = 12}}})),
            "model.sequence.layers[1]: gives width 12; the last layer must give logits of the "
            "vocabulary: end with linear: {out: 16}");
  EXPECT_THAT(ErrorOf(List({embedding, {AttentionSpec{.heads = 3}}, head})),
              StartsWith("model.sequence.layers[1].attention.heads: 3; must divide the width 8"));
  EXPECT_THAT(ErrorOf(List({embedding, {ResidualSpec{}}, head})),
              StartsWith("model.sequence.layers[1].residual.layers (count): 0; must be >= 1"));
  EXPECT_THAT(
      ErrorOf(List({embedding, {ResidualSpec{{{LinearSpec{.out = 9}}}}}, head})),
      StartsWith("model.sequence.layers[1].residual.layers: gives width 9 for 8; a residual must"));
  EXPECT_THAT(
      ErrorOf(List({embedding, {ResidualSpec{{{MlpSpec{}}}}}, head})),
      StartsWith("model.sequence.layers[1].residual.layers[0].mlp.hidden: 0; must be >= 1"));
  EXPECT_THAT(ErrorOf(List({embedding, {ResidualSpec{{{GeluSpec{}}, embedding}}}, head})),
              StartsWith("model.sequence.layers[1].residual.layers[1]: embedding;"));
  EXPECT_THAT(ErrorOf(List({embedding, {DropoutSpec{.rate = 1}}, head})),
              StartsWith("model.sequence.layers[1].dropout.rate: 1; must be"));
}

TEST(LayerList, RefusesResidualsNestedWithoutEnd) {
  LayerSpec nested{GeluSpec{}};
  for (int i = 0; i < 1000; ++i) {
    ResidualSpec residual;
    residual.layers.push_back(std::move(nested));
    nested = {std::move(residual)};
  }
  EXPECT_THAT(ErrorOf(List({{EmbeddingSpec{}}, nested, {LinearSpec{.out = 16}}})),
              HasSubstr("at most 8 may be nested"));
}

// A layer's random streams have 15 bits; those behind them draw initial values.
TEST(LayerList, RefusesALayerThatDrawsFromTooManyStreams) {
  ResidualSpec inner, outer;
  inner.layers.assign(256, LayerSpec{DropoutSpec{0.1}});
  outer.layers.assign(65, LayerSpec{inner});
  EXPECT_THAT(ErrorOf(List({{EmbeddingSpec{}}, {outer}, {LinearSpec{.out = 16}}})),
              HasSubstr("more than 16384 layers that draw random numbers; split the layer"));
}

TEST(LayerList, RefusesArraysThatTheRandomStreamsCannotFill) {
  SequenceSpec list =
      List({{EmbeddingSpec{}}, {MlpSpec{.hidden = 1 << 20}}, {LinearSpec{.out = 16}}});
  list.width = 1 << 16;
  EXPECT_THAT(ErrorOf(list), HasSubstr("model/0001/up.weight would have 68719476736 elements"));
}

// They are how it is trained: weights may be given to a checkpoint that was made without.
TEST(NetworkText, KnowsNothingOfTheWeightsOfSamples) {
  AmoebanetDSpec skips;  // wires that ride past a layer are told by their numbers
  skips.image = {4, 4, 1};
  skips.classes = 3;
  skips.layers = 3;
  skips.filters = 4;
  skips.stem = AmoebanetStem::kSmall;
  for (const NetworkSpec& spec : {NetworkSpec(skips), NetworkSpec(SmallGpt())}) {
    const Network network = Expanded(spec);
    const auto weighted = WithSampleWeights(network, "data.idx.weights");
    ASSERT_TRUE(weighted.ok()) << weighted.status();
    EXPECT_EQ(CanonicalNetworkText(*weighted), CanonicalNetworkText(network));
  }
}

}  // namespace
}  // namespace stagecoach
