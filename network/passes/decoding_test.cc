// The decoding form of networks: what it reads, holds and keeps, and what it refuses.
#include "network/passes/decoding.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/attention.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/zoo/gpt.h"
#include "network/zoo/mlp.h"
#include "network/zoo/sequence.h"
#include "network/zoo/transformer.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Network SmallTransformer() {
  return ExpandedOf(TransformerSpec{.vocabulary = 19,
                                    .source_context = 6,
                                    .target_context = 5,
                                    .width = 8,
                                    .heads = 2,
                                    .encoder_layers = 1,
                                    .decoder_layers = 2});
}

std::vector<std::string> Inputs(const Network& network) {
  std::vector<std::string> names;
  for (const NetworkInput& input : network.inputs) names.push_back(input.name);
  return names;
}

std::vector<std::string> Operations(const NetworkLayer& layer) {
  std::vector<std::string> names;
  for (const Call& call : layer.graph->calls) names.push_back(call.operation);
  return names;
}

TEST(Decoding, AnEncoderIsTheSourceAndItsKeysAreHeld) {
  const DecodingForm form = DecodingOf(SmallTransformer(), /*pool_rows=*/40).value();
  EXPECT_THAT(Inputs(form.source), ElementsAre("source", "source_length"));
  EXPECT_THAT(Inputs(form.target), ElementsAre("tokens", "positions", "places", "history", "held 0",
                                               "held 1", "held 2", "held 3"));
  ASSERT_EQ(form.held.size(), 4u) << "kv and length of two layers";
  const DecodingForm::Held& first = form.held[0];
  EXPECT_EQ(Operations(form.source.layers[static_cast<size_t>(first.layer)]),
            std::vector<std::string>{"linear"});
  EXPECT_THAT(Operations(form.target.layers[static_cast<size_t>(first.layer)]),
              ElementsAre("layer_norm", "linear", "cross_attention", "linear"));
  EXPECT_EQ(FormatType(form.target.wire(first.read).type), "activation[n, source 6, 16]");
  EXPECT_TRUE(form.has_source());
}

TEST(Decoding, KeysAndValuesAreStatesOfTheirAttention) {
  const Network network = SmallTransformer();
  const DecodingForm form = DecodingOf(network, /*pool_rows=*/40).value();
  int attentions = 0;
  for (size_t i = 0; i < network.layers.size(); ++i) {
    const NetworkLayer& layer = form.target.layers[i];
    EXPECT_EQ(layer.label, network.layers[i].label);
    EXPECT_TRUE(form.source.layers[i].states.empty());
    if (layer.states.empty()) continue;
    ++attentions;
    ASSERT_EQ(layer.states.size(), 2u);
    EXPECT_EQ(layer.states[0].shape, (Shape{40, 8}));
  }
  EXPECT_EQ(attentions, 2);
}

TEST(Decoding, EveryParameterIsTheNetworksOwn) {
  const Network network = SmallTransformer();
  const DecodingForm form = DecodingOf(network, 1).value();
  std::vector<std::string> names;
  for (size_t i = 0; i < network.layers.size(); ++i) {
    for (const Network* half : {&form.source, &form.target}) {
      for (const ParameterSpec& spec : half->layers[i].parameters) {
        EXPECT_TRUE(spec.tied()) << spec.name;
        EXPECT_FALSE(spec.trained) << spec.name;
        names.push_back(spec.name);
      }
    }
  }
  size_t all = 0;
  for (const NetworkLayer& layer : network.layers) all += layer.parameters.size();
  EXPECT_EQ(names.size(), all) << "each is read by one of the halves";
}

TEST(Decoding, ANetworkOfTokensAloneHasNoSource) {
  const DecodingForm form = DecodingOf(ExpandedOf(GptSpec{1, 8, 2, 5, 19, 0.1}), 10).value();
  EXPECT_FALSE(form.has_source());
  EXPECT_TRUE(form.held.empty());
  EXPECT_EQ(form.context, 5);
  EXPECT_THAT(Operations(form.target.layers[0]), ElementsAre("embedding", "embedding", "add"))
      << "positions are looked up like tokens";
}

TEST(Decoding, ATextIsOneDocument) {
  GptSpec spec{1, 8, 2, 5, 19, 0.1};
  const DecodingForm without = DecodingOf(ExpandedOf(spec), 10).value();
  spec.documents = true;
  const DecodingForm form = DecodingOf(ExpandedOf(spec), 10).value();
  EXPECT_FALSE(form.has_source()) << "nothing reads where documents begin";
  EXPECT_EQ(Inputs(form.target), Inputs(without.target));
}

TEST(Decoding, RefusesAPoolWithoutRows) {
  EXPECT_THAT(std::string(DecodingOf(SmallTransformer(), 0).status().message()),
              HasSubstr("a pool of 1 row or more"));
}

TEST(Decoding, RefusesWhatIsNotMadeRowByRow) {
  const auto refusal = [](std::vector<LayerSpec> layers) {
    layers.insert(layers.begin(), EmbeddingSpec{});
    layers.push_back(LinearSpec{.out = 19});
    const SequenceSpec spec{
        .width = 8, .context = 5, .vocabulary = 19, .layers = std::move(layers)};
    return std::string(DecodingOf(ExpandedOf(spec), 1).status().message());
  };
  EXPECT_THAT(refusal({AttentionSpec{.heads = 2, .causal = false}}),
              HasSubstr("layer 1, attention: attention: sees rows that are still to be written"));
  EXPECT_THAT(refusal({GroupNormSpec{.groups = 2}}),
              HasSubstr("group_norm: does not make each row by the row of its token"));
  EXPECT_EQ(refusal({AttentionSpec{.heads = 2}}), "");
  const Network images = ExpandedOf(MlpNetworkSpec{.image = {4, 4, 1}, .hidden = 8, .classes = 3});
  EXPECT_EQ(DecodingOf(images, 1).status().message(), "reads no tokens");
}

}  // namespace
}  // namespace stagecoach
