// What a network may not be, and what a builder makes of layers that only hand on.
#include "network/network_builder.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/limits.h"
#include "operations/linear.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Values = std::vector<ValueId>;

class NetworkBuilderTest : public testing::Test {
 protected:
  static Values Linear(const Values& inputs, LayerBuilder& builder) {
    const ValueId weight = builder.Weight({}, "weight", {8, 8}, 0.1);
    return {
        builder.writer().Emit("linear", ToAttributes(LinearAttributes{}), {inputs[0], weight})[0]};
  }
  static Values Gelu(const Values& inputs, LayerBuilder& builder) {
    return {builder.writer().Emit("gelu", {}, {inputs[0]})[0]};
  }
  static Values Same(const Values& inputs, LayerBuilder&) { return inputs; }

  std::vector<WireId> Add(const std::string& label, std::vector<WireId> inputs,
                          Values (*write)(const Values&, LayerBuilder&)) {
    auto outputs = network_.Add(
        {label, label, label}, inputs,
        [write](const Values& values, LayerBuilder& builder) -> absl::StatusOr<Values> {
          return write(values, builder);
        });
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return *outputs;
  }
  std::string Refusal(WireId logits) {
    const auto network = network_.Finish({.output = logits, .targets = targets_}, "model");
    EXPECT_EQ(network.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(network.status().message());
  }

  NetworkBuilder network_{0.02, {}};
  const WireId x_ = network_.Input("x", ActivationType({4, 8}), 0);
  const WireId targets_ = network_.Input("targets", {Element::kIds, Leading::kSamples, {4}}, 8);
};

TEST_F(NetworkBuilderTest, ALayerThatNothingReadsIsRefused) {
  const WireId y = Add("linear", {x_}, Linear)[0];
  Add("gelu", {y}, Gelu);
  EXPECT_THAT(Refusal(y),
              HasSubstr("layer 1 (gelu) makes activation[n, 4, 8], which nothing reads"));
}

TEST_F(NetworkBuilderTest, ANamedLengthHasOneLargestValue) {
  const auto named = [](int64_t size) {
    return ActivationType(Shape::Of({{size, Length::kSource}, {8}}));
  };
  network_.Input("short", named(4), 0);
  network_.Input("long", named(5), 0);
  EXPECT_THAT(Refusal(Add("linear", {x_}, Linear)[0]),
              HasSubstr("long of source 5; must be 4, as of inputs before it"));
}

TEST_F(NetworkBuilderTest, LayersInFrontOfTheFirstParameterHaveNoBackward) {
  const WireId y = Add("gelu", {x_}, Gelu)[0];
  const WireId z = Add("linear", {y}, Linear)[0];
  const auto network = network_.Finish({.output = z, .targets = targets_}, "model");
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_FALSE(network->wire(y).gradient);
  EXPECT_EQ(FirstTrainedLayer(*network), 1);
  EXPECT_TRUE(network->layers[0].lists->backward.calls.empty());
  EXPECT_TRUE(WiresOfCell(*network, 1, 2).sent_gradients.empty());
}

TEST_F(NetworkBuilderTest, ANetworkWithoutParametersIsRefused) {
  EXPECT_EQ(Refusal(Add("gelu", {x_}, Gelu)[0]),
            "model: no parameters; must have a layer that can be trained");
}

TEST_F(NetworkBuilderTest, MoreValuesThanAMessageHoldsAreRefused) {
  const auto fork = [](const Values& inputs, LayerBuilder& builder) {
    Values all;
    for (int i = 0; i <= kMaxCutValues; ++i) all.push_back(Linear(inputs, builder)[0]);
    return all;
  };
  const auto join = [](const Values& inputs, LayerBuilder& builder) {
    ValueId sum = inputs[0];
    for (size_t i = 1; i < inputs.size(); ++i) {
      sum = builder.writer().Emit("add", {}, {sum, inputs[i]})[0];
    }
    return Values{sum};
  };
  const std::vector<WireId> many = Add("fork", {x_}, fork);
  EXPECT_THAT(Refusal(Add("join", many, join)[0]), HasSubstr("65 values go on behind layer 0"));
}

TEST_F(NetworkBuilderTest, WhatALayerHandsOnIsTheSameWire) {
  const WireId y = Add("linear", {x_}, Linear)[0];
  EXPECT_THAT(Add("same", {y}, Same), ElementsAre(y));
}

}  // namespace
}  // namespace stagecoach
