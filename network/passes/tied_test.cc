// Tied parameters as a part of a network: who owns, what a cut exchanges, what is refused.
#include "network/passes/tied.h"

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/limits.h"
#include "network/names/network_text.h"
#include "network/network_kinds.h"
#include "network/passes/freeze.h"
#include "network/zoo/gpt.h"
#include "network/zoo/sequence.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Four square layers: embedding [8, 8] and three linear ones without bias.
Network Squares() {
  const LayerSpec linear = LinearSpec{.out = 8, .bias = false};
  return *ExpandNetwork(
      SequenceSpec{.width = 8,
                   .context = 3,
                   .vocabulary = 8,
                   .layers = {EmbeddingSpec{.position = false}, linear, linear, linear}});
}

std::string RefusalOf(const std::string& parameter, const std::string& owner,
                      Network network = Squares()) {
  return std::string(TieParameter(parameter, owner, "model.tied", &network).message());
}

TEST(Tied, TheFirstLayerThatUsesAParameterOwnsIt) {
  Network network = Squares();
  ASSERT_TRUE(TieParameter("model/0003/weight", "model/0000/token.weight", "", &network).ok());
  ASSERT_TRUE(TieParameter("model/0001/weight", "model/0000/token.weight", "", &network).ok());
  const std::vector<TiedParameter> tied = TiedParameters(network);
  ASSERT_EQ(tied.size(), 1u);
  EXPECT_EQ(tied[0].owner, (ParameterUse{0, 0}));
  EXPECT_THAT(tied[0].users, ElementsAre(ParameterUse{1, 0}, ParameterUse{3, 0}));
  EXPECT_THAT(CanonicalNetworkText(network),
              HasSubstr("  model/0003/weight [8, 8] is model/0000/token.weight\n"));
}

TEST(Tied, ValuesGoDownAsFarAsTheLastUserAndGradientsComeUpFromEachOfThem) {
  Network network = Squares();
  ASSERT_TRUE(TieParameter("model/0002/weight", "model/0000/token.weight", "", &network).ok());
  ASSERT_TRUE(TieParameter("model/0003/weight", "model/0001/weight", "", &network).ok());
  const ParameterUse token{0, 0}, first{1, 0}, second{2, 0}, third{3, 0};
  const CellTies middle = TiesOfCell(network, 1, 3);
  EXPECT_THAT(middle.received_values, ElementsAre(token));
  EXPECT_THAT(middle.sent_values, ElementsAre(first));
  EXPECT_THAT(middle.received_gradients, ElementsAre(third));
  EXPECT_THAT(middle.sent_gradients, ElementsAre(second));
  const CellTies front = TiesOfCell(network, 0, 2);
  EXPECT_THAT(front.sent_values, ElementsAre(token, first));
  EXPECT_THAT(front.received_gradients, ElementsAre(second, third));
  const CellTies all = TiesOfCell(network, 0, 4);
  EXPECT_THAT(all.sent_values, IsEmpty());
  EXPECT_THAT(all.received_gradients, IsEmpty());
  EXPECT_EQ(ValueBytes(network, front.sent_values), 2 * 64 * 4);
  network.precision = Precision::kBfloat16;
  EXPECT_EQ(ValueBytes(network, front.sent_values), 2 * 64 * 2);
  EXPECT_EQ(GradientBytes(network, front.received_gradients), 2 * 64 * 4);
}

TEST(Tied, FrozenOnesAreFrozenInAllLayersAndExchangeNothing) {
  Network network = Squares();
  ASSERT_TRUE(TieParameter("model/0003/weight", "model/0000/token.weight", "", &network).ok());
  const Network frozen = *Freeze(network, {"model/0000/*"}, "training.freeze");
  EXPECT_FALSE(frozen.layers[3].parameters[0].trained);
  EXPECT_FALSE(frozen.layers[3].lists->parameter_gradients[0].valid());
  EXPECT_THAT(TiesOfCell(frozen, 1, 4).received_values, IsEmpty());
  EXPECT_EQ(TiedParameters(frozen).size(), 1u) << "they still share the value";
  const absl::Status user = Freeze(network, {"model/0003/*"}, "training.freeze").status();
  EXPECT_EQ(user.message(),
            "training.freeze[0]: \"model/0003/*\"; what it matches is tied to "
            "model/0000/token.weight: freeze that");
}

TEST(Tied, WhatCannotBeOneParameterIsRefused) {
  EXPECT_THAT(RefusalOf("model/0004/weight", "model/0001/weight"),
              HasSubstr("model.tied: \"model/0004/weight\"; there is no such parameter; did you "
                        "mean \"model/0001/weight\"?"));
  EXPECT_EQ(RefusalOf("model/0001/weight", "model/0002/weight"),
            "model.tied: model/0001/weight, activation[8, 8], tied to model/0002/weight, "
            "activation[8, 8]; must be tied to a parameter of a layer in front of its own");
  EXPECT_THAT(RefusalOf("model/0002/weight", "model/0002/weight"),
              HasSubstr("in front of its own"));
  Network network = Squares();
  ASSERT_TRUE(TieParameter("model/0002/weight", "model/0001/weight", "", &network).ok());
  EXPECT_THAT(RefusalOf("model/0003/weight", "model/0002/weight", network),
              HasSubstr("that one is tied itself: tie both to model/0001/weight"));
  EXPECT_THAT(RefusalOf("model/0001/weight", "model/0000/token.weight", network),
              HasSubstr("model/0002/weight is tied to model/0001/weight: tie that to "
                        "model/0000/token.weight as well"));
  EXPECT_THAT(RefusalOf("model/0003/weight", "model/0001/weight",
                        *Freeze(Squares(), {"model/0003/*"}, "training.freeze")),
              HasSubstr("must be frozen both, or none of them"));
}

TEST(Tied, AreAtMostAsManyAsOneMessageHolds) {
  const LayerSpec linear = LinearSpec{.out = 8, .bias = false};
  SequenceSpec list{.width = 8, .context = 3, .vocabulary = 8, .layers = {EmbeddingSpec{}}};
  for (int i = 0; i <= kMaxTiedUses; ++i) list.layers.push_back(linear);
  Network network = *ExpandNetwork(list);
  for (int i = 1; i <= kMaxTiedUses; ++i) {
    const absl::Status tied = TieParameter(absl::StrFormat("model/%04d/weight", i),
                                           "model/0000/token.weight", "model.tied", &network);
    ASSERT_TRUE(tied.ok()) << tied;
  }
  EXPECT_THAT(RefusalOf("model/0065/weight", "model/0000/token.weight", network),
              HasSubstr("model.tied: 65 tied parameters; at most 64"));
}

TEST(Tied, AHeadThatDoesNotFitItsEmbeddingIsRefusedWithBothTypes) {
  const auto refusal = [](SequenceSpec list) {
    list.tied_embeddings = true;
    return std::string(ExpandNetwork(list).status().message());
  };
  const LayerSpec head = LinearSpec{.out = 16, .bias = false};
  EXPECT_EQ(refusal({.width = 8,
                     .context = 3,
                     .vocabulary = 16,
                     .layers = {EmbeddingSpec{}, LinearSpec{.out = 12}, head}}),
            "model.sequence.tied_embeddings: model/0002/weight, activation[16, 12], tied to "
            "model/0000/token.weight, activation[16, 8]; must have the same type: give both "
            "layers one width, or do not tie them");
  EXPECT_EQ(refusal({.width = 8,
                     .context = 3,
                     .vocabulary = 8,
                     .layers = {EmbeddingSpec{}, head, LinearSpec{.out = 8}, LayerNormSpec{}}}),
            "model.sequence.tied_embeddings: true; needs an embedding as the first layer and a "
            "linear as the last");
  EXPECT_EQ(
      refusal({.layers = {LinearSpec{.out = 7}}, .image = {4, 4, 1}, .classes = 7}),
      "model.sequence.tied_embeddings: true; a list on images has no embedding: leave it out");
}

// GPT-2's smallest, the embedding of the tokens counted once.
TEST(Tied, GptTwoHasItsParameters) {
  GptSpec gpt{.layers = 12, .width = 768, .heads = 12, .context = 1024, .vocabulary = 50257};
  EXPECT_EQ(ParametersOf(*ExpandNetwork(gpt)), 124439808 + 50257 * 768);
  gpt.tied_embeddings = true;
  EXPECT_EQ(ParametersOf(*ExpandNetwork(gpt)), 124439808);
}

}  // namespace
}  // namespace stagecoach
