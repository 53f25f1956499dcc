// Networks on images listed by hand: what layers give, what they are called, and what is said about
// one that does not fit its neighbour.
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layer_kinds.h"
#include "network/layers/activations.h"
#include "network/layers/convolution.h"
#include "network/layers/flatten.h"
#include "network/layers/linear.h"
#include "network/layers/pools.h"
#include "network/layers/residual.h"
#include "network/names/network_text.h"
#include "network/network_kinds.h"
#include "network/zoo/sequence.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

SequenceSpec OnImages(std::vector<LayerSpec> layers) {
  return {.layers = std::move(layers), .image = {8, 6, 3}, .classes = 10};
}

std::string RefusalOfList(const SequenceSpec& list) {
  const absl::Status status = ExpandNetwork(list).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

const ConvolutionSpec kSmall{.out = 4, .kernel = {3}};

TEST(ImageLayers, GiveTheImagesOfTheirWindows) {
  const Network network = ExpandedOf(
      OnImages({ConvolutionSpec{.out = 4, .kernel = {3, 1}, .stride = {2, 1}, .padding = {1, 0}},
                MaxPoolSpec{.kernel = {2}}, ReluSpec{},
                AveragePoolSpec{.kernel = {2, 3}, .stride = {1}, .padding = {1}}, GlobalPoolSpec{},
                LinearSpec{.out = 10}}));
  std::vector<std::string> types;
  for (const NetworkLayer& layer : network.layers) {
    types.push_back(FormatType(network.wire(layer.outputs[0]).type));
  }
  EXPECT_THAT(types, ElementsAre("activation[n, 4, 6, 4]", "activation[n, 2, 3, 4]",
                                 "activation[n, 2, 3, 4]", "activation[n, 3, 3, 4]",
                                 "activation[n, 4]", "activation[n, 10]"));
  EXPECT_EQ(network.inputs[0].name, "images");
  EXPECT_EQ(network.inputs[1].name, "labels");
  EXPECT_EQ(network.inputs[1].classes, 10);
}

TEST(ImageLayers, MayStandInFrontOfTheFirstParameters) {
  const Network network = ExpandedOf(OnImages({ReluSpec{}, FlattenSpec{}, LinearSpec{.out = 10}}));
  EXPECT_THAT(LabelsOf(network), ElementsAre("relu", "flatten", "linear"));
  EXPECT_FALSE(network.wire(network.layers[1].outputs[0]).gradient);
}

TEST(ImageLayers, BeginWithTheVarianceThatReluHalves) {
  const Network network = ExpandedOf(
      OnImages({ConvolutionSpec{.out = 6, .kernel = {3, 5}, .padding = {1, 2}, .groups = 3},
                GlobalPoolSpec{}, LinearSpec{.out = 10}}));
  const ParameterSpec& weight = network.layers[0].parameters[0];
  EXPECT_EQ(weight.shape, Shape({6, 3, 5, 1}));
  EXPECT_DOUBLE_EQ(weight.init_stddev, std::sqrt(2.0 / (3 * 5)));
  EXPECT_EQ(network.layers[0].parameters[1].init, ParameterSpec::Init::kZeros);
  EXPECT_DOUBLE_EQ(network.layers[2].parameters[0].init_stddev, std::sqrt(2.0 / 6));
}

// Manifests hold a digest of these words.
TEST(ImageLayers, TheSameWeightsOnOtherExtentsAreAnotherFunction) {
  const std::vector<LayerSpec> layers = {FlattenSpec{}, LinearSpec{.out = 10}};
  SequenceSpec lying{.layers = layers, .image = {5, 4, 1}, .classes = 10}, standing = lying;
  standing.image = {4, 5, 1};
  EXPECT_NE(CanonicalNetworkText(ExpandedOf(lying)), CanonicalNetworkText(ExpandedOf(standing)));
}

// Seen: a weight of 2^63 elements ended the coordinator, and areas of windows beyond 2^31 lost
// gradients.
TEST(ImageLayers, AWindowLargerThanAnyImageIsRefusedWithItsField) {
  using testing::HasSubstr;
  const SequenceSpec huge{
      .layers = {ConvolutionSpec{.out = 128, .kernel = {1 << 20}, .padding = {1 << 20}}},
      .image = {1, 1, 65536},
      .classes = 2};
  EXPECT_THAT(RefusalOfList(huge), HasSubstr("model.sequence.layers[0].convolution.kernel[0]: "));
  EXPECT_THAT(RefusalOfList(OnImages({MaxPoolSpec{.kernel = {65536}, .padding = {32768}}})),
              HasSubstr("model.sequence.layers[0].max_pool.kernel[0]: 65536"));
}

TEST(ImageLayers, SayInTheirTextWhatShapesDoNotTell) {
  EXPECT_EQ(LayerFunction(kSmall), "convolution:4");
  EXPECT_EQ(LayerFunction(ConvolutionSpec{.out = 4,
                                          .kernel = {3},
                                          .stride = {2},
                                          .padding = {1, 0},
                                          .dilation = {1, 2},
                                          .groups = 2}),
            "convolution:4:stride=2x2:padding=1x0:dilation=1x2:groups=2");
  EXPECT_EQ(LayerFunction(MaxPoolSpec{.kernel = {2}}), "max_pool:2x2");
  EXPECT_EQ(LayerFunction(MaxPoolSpec{.kernel = {3}, .stride = {2}, .padding = {1}}),
            "max_pool:3x3:stride=2x2:padding=1x1");
  EXPECT_EQ(LayerFunction(AveragePoolSpec{.kernel = {2, 3}, .count_padding = true}),
            "average_pool:2x3:count_padding");
  EXPECT_EQ(LayerFunction(GlobalPoolSpec{}), "global_pool");
  EXPECT_EQ(LayerFunction(FlattenSpec{}), "flatten");
}

TEST(ImageLayers, ThatDoNotFitTheirNeighbourAreRefusedWithBothTypesAndTheRemedy) {
  const std::string path = "model.sequence.layers[1]";
  const auto second = [](const LayerSpec& layer) {
    return RefusalOfList(OnImages({kSmall, layer, GlobalPoolSpec{}, LinearSpec{.out = 10}}));
  };
  EXPECT_EQ(second(ConvolutionSpec{.out = 4, .kernel = {5, 3}, .dilation = {2, 1}}),
            path +
                ".convolution.kernel: 5x3; reaches over 9x3 of activation[n, 6, 4, 4], which "
                "is 6x4 with its padding: take a smaller kernel, or more padding");
  EXPECT_EQ(second(MaxPoolSpec{.kernel = {2, 7}, .padding = {1}}),
            path +
                ".max_pool.kernel: 2x7; reaches over 2x7 of activation[n, 6, 4, 4], which is "
                "8x6 with its padding: take a smaller kernel, or more padding");
  EXPECT_EQ(second(AveragePoolSpec{.kernel = {2}, .padding = {2, 1}}),
            path + ".average_pool.padding: 2x1; must be at most half of the kernel, which is 2x2");
  EXPECT_EQ(second(ConvolutionSpec{.out = 6, .kernel = {1}, .groups = 3}),
            path +
                ".convolution.groups: 3; must divide the 4 channels of activation[n, 6, 4, 4] "
                "and the 6 that it gives");
  const std::string reads =
      " of activation[n, 96]; reads activation[n, height, width, channels] with extents <= "
      "1048576: put it in front of flatten and global_pool, in a network that has an image";
  for (const LayerSpec& layer : std::vector<LayerSpec>{
           kSmall, MaxPoolSpec{.kernel = {2}}, AveragePoolSpec{.kernel = {2}}, GlobalPoolSpec{}}) {
    EXPECT_EQ(RefusalOfList(OnImages({kSmall, FlattenSpec{}, layer, LinearSpec{.out = 10}})),
              "model.sequence.layers[2]: " + layer.kind + reads);
  }
  EXPECT_EQ(second(ResidualSpec{{kSmall}}),
            path +
                ".residual.layers: gives activation[n, 4, 2, 4] for activation[n, 6, 4, 4]; a "
                "residual must keep the type");
  EXPECT_EQ(second(ConvolutionSpec{.out = 4}),
            path + ".convolution.kernel: not given; give one number, or height and width");
  EXPECT_EQ(second(MaxPoolSpec{}),
            path + ".max_pool.kernel: not given; give one number, or height and width");
  EXPECT_EQ(second(ConvolutionSpec{.out = 1 << 16, .kernel = {1}, .padding = {1 << 10}}),
            path +
                ": gives activation[n, 2054, 2052, 65536], 276221657088 numbers a sample; at "
                "most 268435456: a larger stride, or fewer channels");
}

TEST(ImageLayers, TheLastMustGiveTheLogits) {
  EXPECT_EQ(RefusalOfList(OnImages({kSmall, FlattenSpec{}, LinearSpec{.out = 9}})),
            "model.sequence.layers[2]: gives width 9; the last layer must give logits of the "
            "classes: end with linear: {out: 10}");
  EXPECT_EQ(RefusalOfList(OnImages({kSmall, LinearSpec{.out = 10}})),
            "model.sequence.layers[1]: gives activation[n, 6, 4, 10]; the last layer must give "
            "logits activation[n, 10]: end with flatten or global_pool, and linear: {out: 10}");
  SequenceSpec nothing = OnImages({FlattenSpec{}});
  nothing.classes = 8 * 6 * 3;
  EXPECT_EQ(RefusalOfList(nothing),
            "model.sequence: no parameters; must have a layer that can be trained");
}

TEST(ImageLayers, AListIsOnTextOrOnImages) {
  SequenceSpec both = OnImages({kSmall});
  both.context = 4;
  EXPECT_EQ(RefusalOfList(both),
            "model.sequence.context: 4; a list on images has none: leave it out");
  SequenceSpec neither;
  neither.layers = {kSmall};
  EXPECT_EQ(RefusalOfList(neither),
            "model.sequence: neither text nor images; give width, context and vocabulary, or image "
            "and classes");
  SequenceSpec text{.width = 8, .context = 4, .vocabulary = 16, .layers = {kSmall}, .classes = 3};
  EXPECT_EQ(RefusalOfList(text),
            "model.sequence.classes: 3; a list on text has none: leave it out");
}

}  // namespace
}  // namespace stagecoach
