// Which calls of a joint backward become one.
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/lists/follow_testing.h"
#include "network/lists/gradient_calls.h"
#include "network/lists/layer_graph.h"
#include "operations/norms/layer_norm.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

// Values 0 to 5 are dy, x, weight, mean, rstd and the trunk's gradient; 10 and 11 are the gradients
// of the weights.
std::vector<ValueId> Ids(const std::vector<int>& values) {
  std::vector<ValueId> ids;
  for (const int value : values) ids.emplace_back(value);
  return ids;
}
Call OfInput(bool residual) {
  return {"layer_norm_input_gradient",
          ToAttributes(LayerNormGradientAttributes{.residual = residual}),
          residual ? Ids({0, 1, 2, 3, 4, 5}) : Ids({0, 1, 2, 3, 4}),
          Ids({6}),
          {}};
}
const Call kOfWeights = {"layer_norm_weight_gradient", {}, Ids({0, 1, 3, 4}), {}, Ids({10, 11})};
const Call kOther = {"linear_weight_gradient", {}, Ids({0, 1}), {}, Ids({12})};

TEST(JoinCalls, NeighboursWithTheSameOperandsBecomeOne) {
  for (const bool residual : {false, true}) {
    const Call input = OfInput(residual);
    const Call both = {"layer_norm_gradient", input.attributes, input.inputs, input.outputs,
                       kOfWeights.adds};
    EXPECT_EQ(JoinCalls({kOther, input, kOfWeights, kOther}),
              (std::vector<Call>{kOther, both, kOther}));
  }
}

// Moving one of them would add in another order, or hold what it reads for longer.
TEST(JoinCalls, WhatStandsBetweenKeepsThemApart) {
  const std::vector<Call> calls = {OfInput(false), kOther, kOfWeights};
  EXPECT_EQ(JoinCalls(calls), calls);
  const std::vector<Call> reversed = {kOfWeights, OfInput(false)};
  EXPECT_EQ(JoinCalls(reversed), reversed);
}

TEST(JoinCalls, AnotherNormsGradientStaysApart) {
  for (size_t i = 0; i < kOfWeights.inputs.size(); ++i) {
    Call other = kOfWeights;
    other.inputs[i] = ValueId(7);
    const std::vector<Call> calls = {OfInput(true), other};
    EXPECT_EQ(JoinCalls(calls), calls) << "input " << i;
  }
}

// A norm whose output two calls read, so that the gradients of both stand behind one another with
// the sums between.
TEST(JoinCalls, OfAllNormsOfALayerAndOfNoPart) {
  LayerWriter writer;
  const ValueId x = writer.Input(ActivationType({8, 16}));
  const auto norm = [&](ValueId of) {
    const ValueId weight = writer.Parameter(Element::kFloat32, {16});
    const ValueId bias = writer.Parameter(Element::kFloat32, {16});
    return writer.Emit("layer_norm", ToAttributes(LayerNormAttributes{}), {of, weight, bias})[0];
  };
  const ValueId first = norm(x), second = norm(first);
  const ValueId sum = writer.Emit("add", {}, {first, second})[0];
  const auto graph = writer.Finish({sum});
  ASSERT_TRUE(graph.ok()) << graph.status();
  const LayerLists lists = Differentiate(*graph);
  EXPECT_THAT(OperationsOf(lists.backward),
              ElementsAre("layer_norm_gradient", "layer_norm_gradient"));
  EXPECT_THAT(OperationsOf(lists.input_gradient),
              ElementsAre("layer_norm_input_gradient", "layer_norm_input_gradient"));
  EXPECT_THAT(OperationsOf(lists.weight_gradient),
              ElementsAre("layer_norm_weight_gradient", "layer_norm_weight_gradient"));
  ExpectListsCanBeFollowed(lists);
}

}  // namespace
}  // namespace stagecoach
