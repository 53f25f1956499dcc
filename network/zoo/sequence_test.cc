// A list of layers with an encoder: the transformer spelt out, initial values, refusals. Lists
// without one are in network/network_kinds_test.cc and network/layers/image_layers_test.cc.
#include "network/zoo/sequence.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/golden_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/flatten.h"
#include "network/lists/lists.h"
#include "network/names/network_text.h"
#include "network/passes/decoding.h"
#include "network/zoo/listed_transformer_testing.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TransformerSpec OneAndOne() {
  return {.vocabulary = 40,
          .source_context = 4,
          .target_context = 3,
          .width = 8,
          .hidden = 12,
          .heads = 2,
          .encoder_layers = 1,
          .decoder_layers = 1};
}

// Initial values aside.
void ExpectTheSameNetwork(Network list, const Network& zoo) {
  EXPECT_EQ(CanonicalNetworkText(list), CanonicalNetworkText(zoo));
  EXPECT_EQ(list.inputs, zoo.inputs);
  EXPECT_EQ(list.wires, zoo.wires);
  EXPECT_EQ(list.objective, zoo.objective);
  ASSERT_EQ(list.layers.size(), zoo.layers.size());
  for (size_t i = 0; i < zoo.layers.size(); ++i) {
    NetworkLayer& layer = list.layers[i];
    const NetworkLayer& same = zoo.layers[i];
    SCOPED_TRACE(same.label);
    EXPECT_EQ(layer.function, same.function);
    EXPECT_EQ(layer.inputs, same.inputs);
    EXPECT_EQ(layer.outputs, same.outputs);
    EXPECT_EQ(FormatLists(*layer.lists), FormatLists(*same.lists));
    ASSERT_EQ(layer.parameters.size(), same.parameters.size());
    for (size_t p = 0; p < same.parameters.size(); ++p) {
      layer.parameters[p].init_stddev = same.parameters[p].init_stddev;
    }
    EXPECT_EQ(layer.parameters, same.parameters);
  }
}

TEST(SequenceOfPairs, IsTheTransformerThatItSpellsOut) {
  TransformerSpec spec = OneAndOne();
  ExpectTheSameNetwork(ExpandedOf(ListedTransformer(spec)), ExpandedOf(spec));
  ExpectGolden("network_text_transformer.txt",
               CanonicalNetworkText(ExpandedOf(ListedTransformer(spec))));
  spec.encoder_layers = 2;
  spec.decoder_layers = 3;
  spec.head_width = 5;
  spec.positions = TransformerPositions::kLearned;
  spec.tie = TransformerTie::kNone;
  spec.dropout = 0.1;
  spec.activation = TransformerActivation::kGelu;
  spec.bias = false;
  ExpectTheSameNetwork(ExpandedOf(ListedTransformer(spec)), ExpandedOf(spec));
}

TEST(SequenceOfPairs, TiesBothEmbeddingsAndTheOutputToTheFirst) {
  const auto owners = [](TransformerTie tie) {
    TransformerSpec spec = OneAndOne();
    spec.tie = tie;
    const Network network = ExpandedOf(ListedTransformer(spec));
    std::vector<std::string> names;
    for (const size_t layer : {size_t{0}, size_t{4}, network.layers.size() - 1}) {
      names.push_back(network.layers[layer].parameters.front().tied_to);
    }
    return names;
  };
  EXPECT_THAT(owners(TransformerTie::kAll),
              ElementsAre("", "model/0000/token.weight", "model/0000/token.weight"));
  EXPECT_THAT(owners(TransformerTie::kNone), ElementsAre("", "", ""));
}

// As in a list on text: a branch's last projection begins smaller, by the branches of its trunk.
TEST(SequenceOfPairs, BeginsEachTrunkByItsOwnBranches) {
  const Network network = ExpandedOf(ListedTransformer(OneAndOne()));
  EXPECT_DOUBLE_EQ(StddevOf(network, "model/0000/token.weight"), 1 / std::sqrt(8));
  EXPECT_DOUBLE_EQ(StddevOf(network, "model/0004/token.weight"), 1 / std::sqrt(8));
  const double encoder = 0.02 / std::sqrt(2), decoder = 0.02 / std::sqrt(3);
  EXPECT_DOUBLE_EQ(StddevOf(network, "model/0001/attention.proj.weight"), encoder);
  EXPECT_DOUBLE_EQ(StddevOf(network, "model/0002/mlp.down.weight"), encoder);
  EXPECT_DOUBLE_EQ(StddevOf(network, "model/0005/attention.proj.weight"), decoder);
  EXPECT_DOUBLE_EQ(StddevOf(network, "model/0006/cross_attention.proj.weight"), decoder);
  EXPECT_DOUBLE_EQ(StddevOf(network, "model/0006/cross_attention.kv.weight"), 0.02);
}

TEST(SequenceOfPairs, WritesTokenByToken) {
  const auto form = DecodingOf(ExpandedOf(ListedTransformer(OneAndOne())), /*pool_rows=*/10);
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_TRUE(form->has_source());
  EXPECT_EQ(form->held.size(), 2u) << "kv and length of the cross attention";
}

// One layer may have both attentions, of any width.
TEST(SequenceOfPairs, TakesAttentionsInOneLayer) {
  SequenceSpec list = ListedTransformer(OneAndOne());
  list.encoder = {EmbeddingSpec{}, AttentionSpec{.heads = 2, .causal = false},
                  LinearSpec{.out = 6}};
  list.layers = {EmbeddingSpec{},
                 ResidualSpec{{AttentionSpec{.heads = 2}, CrossAttentionSpec{.heads = 4}}},
                 LinearSpec{.out = 40}};
  list.tied_embeddings = false;
  const Network network = ExpandedOf(list);
  const WireId memory = network.layers[2].outputs[0], length = network.InputNamed("source_length");
  EXPECT_THAT(network.layers[1].inputs, ElementsAre(network.layers[0].outputs[0], length));
  EXPECT_THAT(network.layers[4].inputs, ElementsAre(network.layers[3].outputs[0], memory, length));
  EXPECT_EQ(network.layers[4].function, "residual(attention:2 cross_attention:4)");
}

std::string RefusalOf(void (*spoil)(SequenceSpec&)) {
  SequenceSpec list = ListedTransformer(OneAndOne());
  spoil(list);
  const absl::Status status = ExpandNetwork(list).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(SequenceOfPairs, RefusesFieldsOfOtherLists) {
  const std::string path = "model.sequence.";
  EXPECT_EQ(RefusalOf([](SequenceSpec& s) { s.context = 4; }),
            path +
                "context: 4; a list with an encoder has two: give source_context and "
                "target_context");
  EXPECT_EQ(RefusalOf([](SequenceSpec& s) { s.target_context = 0; }),
            path + "target_context: 0; must be >= 1");
  EXPECT_EQ(RefusalOf([](SequenceSpec& s) { s.width = 0; }), path + "width: 0; must be >= 1");
  EXPECT_THAT(RefusalOf([](SequenceSpec& s) { s.documents = true; }),
              StartsWith(path + "documents: true; a list on pairs"));
  EXPECT_THAT(RefusalOf([](SequenceSpec& s) { s.classes = 2; }),
              StartsWith(path + "classes: 2; a list on pairs"));
  EXPECT_EQ(RefusalOf([](SequenceSpec& s) { s.encoder.clear(); }),
            path + "source_context: 4; a list on text without an encoder has none: leave it out");
  const auto on_images = [](SequenceSpec& s) {
    s = {.layers = {FlattenSpec{}, LinearSpec{.out = 3}}, .image = {4, 4, 1}, .classes = 3};
    s.encoder = {EmbeddingSpec{}};
  };
  EXPECT_EQ(RefusalOf(on_images),
            path + "encoder: 1 layers; a list on images has none: leave it out");
}

TEST(SequenceOfPairs, RefusesAttentionInTheWrongList) {
  const std::string path = "model.sequence.";
  EXPECT_EQ(RefusalOf([](SequenceSpec& s) { s.encoder[1] = AttentionSpec{.heads = 2}; }),
            path +
                "encoder[1].attention.causal: true; an encoder's rows attend to the whole source: "
                "set causal: false");
  EXPECT_EQ(RefusalOf([](SequenceSpec& s) {
              s.encoder[2] = ResidualSpec{{CrossAttentionSpec{.heads = 2}}};
            }),
            path +
                "encoder[2]: residual(cross_attention); cross_attention stands in `layers`: an "
                "encoder has attention with causal: false");
  EXPECT_EQ(RefusalOf([](SequenceSpec& s) { s.layers.erase(s.layers.begin() + 2); }),
            path +
                "encoder: 4 layers; nothing reads their output: put a cross_attention into "
                "`layers`, or leave the encoder out");
  EXPECT_EQ(RefusalOf([](SequenceSpec& s) {
              s = {.width = 8, .context = 4, .vocabulary = 16};
              s.layers = {EmbeddingSpec{}, ResidualSpec{{CrossAttentionSpec{.heads = 2}}},
                          LinearSpec{.out = 16}};
            }),
            path +
                "layers[1].residual.layers[0]: cross_attention; reads an encoder's output, and "
                "there is none: list the layers of an `encoder`, or take attention");
  EXPECT_EQ(RefusalOf([](SequenceSpec& s) { s.encoder[0] = LayerNormSpec{}; }),
            path + "encoder[0]: layer_norm; the first layer must be an embedding");
}

// Each of them would make rows of a sentence of the padding behind it.
TEST(SequenceOfPairs, RefusesLayersThatReadPadding) {
  const std::string path = "model.sequence.";
  const std::string why = "; would read the padding behind a sentence, by ";
  EXPECT_THAT(
      RefusalOf([](SequenceSpec& s) { s.layers[1] = AttentionSpec{.heads = 2, .causal = false}; }),
      StartsWith(path + "layers[1]: attention" + why + "attention without a causal mask: take"));
  EXPECT_THAT(RefusalOf([](SequenceSpec& s) { s.encoder[2] = BatchNormSpec{}; }),
              StartsWith(path + "encoder[2]: batch_norm" + why + "batch_norm: take layers"));
  EXPECT_THAT(
      RefusalOf([](SequenceSpec& s) { s.layers[3] = ResidualSpec{{GroupNormSpec{.groups = 2}}}; }),
      StartsWith(path + "layers[3]: residual(group_norm)" + why + "group_norm"));
}

TEST(SequenceOfPairs, RefusesLogitsOfAnotherWidth) {
  EXPECT_THAT(RefusalOf([](SequenceSpec& s) {
                s.tied_embeddings = false;
                s.layers.back() = LinearSpec{.out = 7};
              }),
              HasSubstr("layers[5]: gives width 7; the last layer must give logits of the "
                        "vocabulary: end with linear: {out: 40}"));
  EXPECT_THAT(
      RefusalOf([](SequenceSpec& s) { s.encoder.assign(10000, LayerSpec(LayerNormSpec{})); }),
      HasSubstr("model.sequence.encoder (count): 10000; must be <= 9999"));
}

}  // namespace
}  // namespace stagecoach
