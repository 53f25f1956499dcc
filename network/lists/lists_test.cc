// Lists of layers as golden texts, and what differentiation promises of any layer.
#include "network/lists/lists.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/golden_testing.h"
#include "base/numbers/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layer_builder.h"
#include "network/layers/activations.h"
#include "network/layers/attention.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/lists/cost.h"
#include "network/lists/follow_testing.h"
#include "network/lists/gradient_calls.h"
#include "operations/linear.h"
#include "operations/norms/layer_norm.h"
#include "operations/pointwise/dropout.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

LayerGraph GraphOf(const LayerSpec& spec, int64_t width = 16) {
  LayerBuilder builder(3, kInitStddev);
  const ValueId x = builder.writer().Input(ActivationType({8, width}));
  const absl::StatusOr<ValueId> y = BuildLayer(spec, x, {.path = "layer"}, builder);
  CHECK_OK(y.status());
  absl::StatusOr<BuiltLayer> built = builder.Finish(*y);
  CHECK_OK(built.status());
  return built->graph;
}

LayerSpec Residual(std::vector<LayerSpec> layers) { return {ResidualSpec{std::move(layers)}}; }
const LayerSpec kNorm{LayerNormSpec{}}, kAttend{AttentionSpec{2, 0.1}}, kMlp{MlpSpec{64}},
    kDrop{DropoutSpec{0.1}}, kGelu{GeluSpec{}}, kDense{LinearSpec{16, true}};

TEST(Lists, OfAGptBlock) {
  ExpectGolden("lists/attention.txt",
               FormatLists(Differentiate(GraphOf(Residual({kNorm, kAttend})))));
  ExpectGolden("lists/mlp_dropout.txt",
               FormatLists(Differentiate(GraphOf(Residual({kNorm, kMlp, kDrop})))));
}

TEST(Lists, OfAnEmbeddingHaveNoInputGradient) {
  LayerBuilder builder(0, kInitStddev, {.vocabulary = 50, .width = 16});
  const ValueId ids = builder.writer().Input({Element::kIds, Leading::kSamples, {8}});
  const auto y = BuildLayer(EmbeddingSpec{.dropout = 0.1}, ids, {.path = "layer"}, builder);
  ASSERT_TRUE(y.ok()) << y.status();
  const LayerLists lists = Differentiate(builder.Finish(*y)->graph);
  EXPECT_THAT(lists.input_gradients, ElementsAre(ValueId()));
  EXPECT_TRUE(lists.input_gradient.calls.empty());
  ExpectGolden("lists/embedding.txt", FormatLists(lists));
}

// examples/layers.yaml lists them one by one, and its bits are those of three calls.
TEST(Lists, OfLinearGeluLinearByHandAreNotFused) {
  const LayerLists lists = Differentiate(GraphOf(Residual({kDense, kGelu, kDense})));
  EXPECT_THAT(OperationsOf(lists.forward), ElementsAre("linear", "gelu", "linear"));
  EXPECT_THAT(
      OperationsOf(lists.input_gradient),
      ElementsAre("linear_input_gradient", "gelu_gradient", "linear_input_gradient", "add"));
}

TEST(Lists, OfAnMlpHaveTheGeluGradientInTheProduct) {
  EXPECT_THAT(OperationsOf(Differentiate(GraphOf(kMlp)).input_gradient),
              ElementsAre("linear_input_gradient", "linear_input_gradient"));
}

// A value that three calls use: their shares are summed from the last user to the first, and the
// layer norm's, the last share, with its sum in one call.
TEST(Lists, SharesOfAGradientAreSummedFromTheLastUserToTheFirst) {
  const LayerLists lists = Differentiate(GraphOf(Residual({Residual({kNorm, kGelu}), kGelu})));
  const auto& calls = lists.input_gradient.calls;
  EXPECT_THAT(OperationsOf(lists.input_gradient),
              ElementsAre("gelu_gradient", "gelu_gradient", "add", "layer_norm_input_gradient"));
  const ValueId outer = lists.output_gradients[0], inner = calls[0].call.outputs[0];
  EXPECT_THAT(calls[2].call.inputs, ElementsAre(outer, inner));
  EXPECT_EQ(calls[3].call.inputs.back(), calls[2].call.outputs[0]);
}

TEST(Lists, OfTheIdentityAreEmpty) {
  const LayerLists lists = Differentiate(GraphOf({DropoutSpec{0.0}}));
  EXPECT_TRUE(lists.forward.calls.empty());
  EXPECT_TRUE(lists.backward.calls.empty());
  EXPECT_EQ(lists.outputs, lists.inputs);
  EXPECT_EQ(lists.input_gradients, lists.output_gradients);
}

TEST(Lists, InAnEvaluationDropoutIsTheIdentity) {
  const LayerLists lists = Differentiate(GraphOf(Residual({kDrop})));
  EXPECT_THAT(OperationsOf(lists.forward), ElementsAre("dropout", "add"));
  ASSERT_THAT(OperationsOf(lists.evaluation), ElementsAre("add"));
  EXPECT_THAT(lists.evaluation.calls[0].call.inputs, ElementsAre(lists.inputs[0], lists.inputs[0]));
  EXPECT_FALSE(lists.evaluation.calls[0].in_place.has_value()) << "x is not the layer's to write";
}

TEST(Writer, TheFirstErrorStaysAndNamesTheOperation) {
  LayerWriter writer;
  const ValueId x = writer.Input(ActivationType({8, 16}));
  const ValueId weight = writer.Parameter(Element::kActivation, {4, 5});
  const ValueId y = writer.Emit("linear", ToAttributes(LinearAttributes{}), {x, weight})[0];
  EXPECT_FALSE(y.valid());
  writer.Emit("gelu", {}, {x});
  const auto graph = writer.Finish({y});
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(graph.status().message()),
              HasSubstr("linear: x is activation[n, 8, 16]; must be activation[n, 8, 5]"));
}

// Layers of random pieces. Whoever reads a list by itself must be able to follow it.
LayerSpec RandomLayer(uint32_t* draw, int depth) {
  const auto pick = [&](uint32_t of) { return RandomBits({.seed = 77}, (*draw)++) % of; };
  switch (pick(depth < 3 ? 7 : 6)) {
    case 0:
      return kNorm;
    case 1:
      return {AttentionSpec{2, pick(2) == 0 ? 0.0 : 0.2}};
    case 2:
      return kMlp;
    case 3:
      return kDense;
    case 4:
      return kGelu;
    case 5:
      return {DropoutSpec{pick(2) == 0 ? 0.0 : 0.2}};
  }
  std::vector<LayerSpec> inner(1 + pick(4));
  for (LayerSpec& layer : inner) layer = RandomLayer(draw, depth + 1);
  return Residual(std::move(inner));
}

TEST(Lists, OfAnyLayerCanBeFollowed) {
  uint32_t draw = 0;
  for (int round = 0; round < 200; ++round) {
    const LayerGraph graph = GraphOf(RandomLayer(&draw, 0));
    ExpectListsCanBeFollowed(Differentiate(graph));
    if (HasFailure()) return;
  }
}

TEST(Lists, TheJointBackwardNeedsNoMoreMemoryThanItsInputPart) {
  uint32_t draw = 5000;
  for (int round = 0; round < 100; ++round) {
    const LayerLists lists = Differentiate(GraphOf(RandomLayer(&draw, 0)));
    EXPECT_LE(PeakOfList(lists, lists.backward, DType::kF32, {}),
              PeakOfList(lists, lists.input_gradient, DType::kF32, {}))
        << FormatLists(lists);
  }
}

ListedCall Calls(const char* name, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
                 std::vector<ValueId> adds) {
  return {{name, {}, std::move(inputs), std::move(outputs), std::move(adds)}, {}, {}};
}

// Two calls that add to one parameter, the first of which frees nothing: the second waits for it.
TEST(JointOrder, WhatAddsToOneParameterKeepsItsOrder) {
  const ValueId dy(0), x(1), z(2), dx(3), dw(4), last(5);
  const std::vector<Call> input_part = {Calls("i1", {dy}, {dx}, {}).call,
                                        Calls("i2", {dx, x}, {last}, {}).call};
  const std::vector<Call> weight_part = {Calls("w1", {x}, {}, {dw}).call,
                                         Calls("w2", {z}, {}, {dw}).call};
  std::vector<std::string> names;
  for (const Call& call : JointOrder(input_part, weight_part, {last})) {
    names.push_back(call.operation);
  }
  EXPECT_THAT(names, ElementsAre("i1", "i2", "w1", "w2"));
  const std::vector<Call> apart = {weight_part[0], Calls("w2", {z}, {}, {ValueId(6)}).call};
  names.clear();
  for (const Call& call : JointOrder(input_part, apart, {last})) names.push_back(call.operation);
  EXPECT_THAT(names, ElementsAre("w2", "i1", "i2", "w1"));
}

// Per sample, in activations of 8 * 16 floats: the trunk is no part of the stash, as no call of the
// backward reads it, and is there until the sum.
TEST(Memory, OfAForwardThatKeepsItsStashCountsWhatItDoesNotKeep) {
  const int64_t activation = 8 * 16 * 4;
  const LayerLists lists = Differentiate(GraphOf(Residual({kDrop, kGelu, kDrop})));
  EXPECT_EQ(StashBytes(lists, DType::kF32), activation) << "the input of the GELU";
  EXPECT_EQ(PeakOfList(lists, lists.forward, DType::kF32, {}), 3 * activation)
      << "what each dropout and the GELU make";
}

TEST(Cost, KnowsTheLargestMaskOfALayer) {
  const auto drawn = [](const LayerSpec& layer) {
    return MostDrawn(Differentiate(GraphOf(layer)));
  };
  EXPECT_EQ(drawn(Residual({kNorm, kMlp})), 0);
  EXPECT_EQ(drawn({AttentionSpec{2, 0.0}}), 0);
  EXPECT_EQ(drawn({AttentionSpec{2, 0.1}}), 2 * 8 * 8);
  EXPECT_EQ(drawn(Residual({kAttend, {LinearSpec{64, true}}, kDrop, kDense})), 8 * 64);
}

}  // namespace
}  // namespace stagecoach
