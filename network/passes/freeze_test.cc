// What is left of a network's lists where parameters are frozen.
#include "network/passes/freeze.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/lists/follow_testing.h"
#include "network/memory/cell_memory.h"
#include "network/network_builder.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// x -> linear, batch norm, residual(layer norm, linear), linear.
Network FourLayers() {
  NetworkBuilder builder(0.02, {});
  const WireId x = builder.Input("x", ActivationType({4, 8}), 0);
  const WireId targets = builder.Input("targets", {Element::kIds, Leading::kSamples, {4}}, 8);
  WireId y = x;
  const LayerSpec linear = LinearSpec{.out = 8};
  for (const LayerSpec& spec : std::vector<LayerSpec>{
           linear, BatchNormSpec{}, ResidualSpec{{LayerNormSpec{}, linear}}, linear}) {
    auto added = builder.Add(spec, "layer", y);
    CHECK_OK(added.status());
    y = *added;
  }
  auto network = builder.Finish({.output = y, .targets = targets}, "model");
  CHECK_OK(network.status());
  return *std::move(network);
}

Network Frozen(const std::vector<std::string>& patterns) {
  auto network = Freeze(FourLayers(), patterns, "training.freeze");
  CHECK_OK(network.status());
  for (const NetworkLayer& layer : network->layers) ExpectListsCanBeFollowed(*layer.lists);
  return *std::move(network);
}

std::vector<std::string> BackwardOf(const Network& network, size_t layer) {
  return OperationsOf(network.layers[layer].lists->backward);
}

TEST(Freeze, NothingComesBackInFrontOfTheFirstTrainedLayer) {
  const Network network = Frozen({"model/0000/*", "model/0001/*"});
  EXPECT_EQ(FirstTrainedLayer(network), 2);
  EXPECT_THAT(BackwardOf(network, 0), IsEmpty());
  EXPECT_THAT(BackwardOf(network, 1), ElementsAre("batch_norm_fold")) << "its averages move";
  EXPECT_THAT(network.layers[0].lists->stash, IsEmpty());
  EXPECT_THAT(network.layers[0].lists->parameter_gradients, ElementsAre(ValueId(), ValueId()));
  EXPECT_THAT(BackwardOf(network, 2), ElementsAre("linear_input_gradient", "linear_weight_gradient",
                                                  "layer_norm_weight_gradient"))
      << "and no gradient of its input";
  EXPECT_THAT(WiresOfCell(network, 2, 4).sent_gradients, IsEmpty());
  EXPECT_EQ(WiresOfCell(network, 3, 4).sent_gradients.size(), 1u);
}

TEST(Freeze, GradientsPassThroughFrozenLayersBehindTrainedOnes) {
  const Network network = Frozen({"model/0002/*", "model/0003/bias"});
  EXPECT_EQ(FirstTrainedLayer(network), 0);
  EXPECT_THAT(BackwardOf(network, 2),
              ElementsAre("linear_input_gradient", "layer_norm_input_gradient"));
  EXPECT_FALSE(network.layers[3].lists->parameter_gradients[1].valid()) << "no buffer for the bias";
}

TEST(Freeze, ANetworkThatTrainsNothingHasNoBackward) {
  const auto network = FreezeAll(FourLayers());
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(FirstTrainedLayer(*network), 4);
  for (const NetworkLayer& layer : network->layers) {
    ExpectListsCanBeFollowed(*layer.lists);
    for (const ValueId gradient : layer.lists->parameter_gradients) EXPECT_FALSE(gradient.valid());
    for (const ValueId gradient : layer.lists->output_gradients) EXPECT_FALSE(gradient.valid());
  }
  EXPECT_THAT(WiresOfCell(*network, 1, 4).sent_gradients, IsEmpty());
}

// One operation gives both gradients: the buffer of the frozen one is there, and nobody reads it.
TEST(Freeze, AGradientThatComesWithAnothersHasABuffer) {
  const Network network = Frozen({"model/0001/weight"});
  EXPECT_TRUE(network.layers[1].lists->parameter_gradients[0].valid());
  EXPECT_FALSE(network.layers[1].parameters[0].trained);
}

TEST(Freeze, KeepsLessInMemory) {
  const int64_t all = MemoryOfCell(FourLayers(), 0, 4).stash;
  const int64_t some = MemoryOfCell(Frozen({"model/0000/*", "model/0001/*"}), 0, 4).stash;
  EXPECT_EQ(all - some, 2 * 4 * 8 * 4 + 8 * 4) << "two layers' inputs, and rstd of all samples";
}

TEST(Freeze, WithoutPatternsIsTheSameNetwork) {
  const Network network = FourLayers(), same = *Freeze(network, {}, "training.freeze");
  EXPECT_EQ(same.layers[1].lists, network.layers[1].lists);
}

TEST(Freeze, ManyOrLongPatternsAreRefusedBeforeAnyIsCompared) {
  const absl::Status many =
      Freeze(Network(), std::vector<std::string>(257, "*"), "training.freeze").status();
  EXPECT_EQ(many.message(), "training.freeze: 257 patterns; at most 256: let * stand for more");
  const absl::Status longest =
      Freeze(Network(), {"*", std::string(1 << 20, 'a')}, "training.freeze").status();
  EXPECT_EQ(longest.message(), "training.freeze[1]: a pattern of 1048576 bytes; at most 256");
}

}  // namespace
}  // namespace stagecoach
