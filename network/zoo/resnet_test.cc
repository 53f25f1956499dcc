// What weights of a resnet hang on: layers, names, shapes and their number; where it may be cut; how they begin.
#include "network/zoo/resnet.h"

#include <cmath>
#include <string>

#include "base/golden_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/model_text.h"
#include "network/network_kinds.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

ResnetSpec SmallResnet() { return {.image = {9, 7, 3}, .classes = 5, .depth = 8, .width = 4}; }

TEST(Resnet, TextStaysAsItIs) {
  ExpectGolden("model_text_resnet.txt", CanonicalModelText(ExpandedOf(SmallResnet())));
}

TEST(Resnet, IsCutBetweenItsBlocks) {
  const Network network = ExpandedOf(SmallResnet());
  EXPECT_THAT(LabelsOf(network),
              ElementsAre("stem", "basic_block", "basic_block", "basic_block", "head"));
  // Images of 9x7, 9x7, 5x4, 3x2, and the logits, in float32.
  EXPECT_THAT(CutBytes(network),
              ElementsAre(4 * 9 * 7 * 4, 4 * 9 * 7 * 4, 4 * 5 * 4 * 8, 4 * 3 * 2 * 16, 4 * 5));
  EXPECT_EQ(network.targets(), 1);
  EXPECT_EQ(network.classes(), 5);
}

// ResNet-20 on CIFAR, n = 3, with 1x1 projections. Stem 3*3*3*16 + 2*16 = 464. First stage, three blocks of
// 2 * 9*16*16 + 4*16 = 4672: 14,016. Second, 9*16*32 + 9*32*32 + 4*32 and its projection 16*32 + 2*32, then two of
// 2 * 9*32*32 + 4*32: 14,528 + 2 * 18,560 = 51,648. Third alike: 57,728 + 2 * 73,984 = 205,696. Head 64*10 + 10 = 650.
TEST(Resnet, Of20LayersHas272474Parameters) {
  const Network network =
      ExpandedOf(ResnetSpec{.image = {32, 32, 3}, .classes = 10, .depth = 20, .width = 16});
  EXPECT_EQ(network.layers.size(), 11u);
  EXPECT_EQ(ParametersOf(network), 464 + 14'016 + 51'648 + 205'696 + 650);
  EXPECT_EQ(ParametersOf(network), 272'474);
}

TEST(Resnet, BeginsWithTheVarianceThatReluHalves) {
  const Network network = ExpandedOf(SmallResnet());
  const ParameterSpec& second = network.layers[1].parameters[3];
  EXPECT_EQ(second.name, "model/0001/second.convolution.weight");
  EXPECT_EQ(second.shape, Shape({4, 3, 3, 4}));
  EXPECT_DOUBLE_EQ(second.init_stddev, std::sqrt(2.0 / (3 * 3 * 4)));
  const ParameterSpec& linear = network.layers[4].parameters[0];
  EXPECT_EQ(linear.name, "model/0004/linear.weight");
  EXPECT_DOUBLE_EQ(linear.init_stddev, std::sqrt(2.0 / 16));
}

TEST(Resnet, TakesImagesOfOnePixel) {
  EXPECT_EQ(ExpandedOf(ResnetSpec{.image = {1, 1, 1}, .classes = 2, .depth = 8, .width = 1})
                .layers.size(),
            5u);
}

TEST(Resnet, RefusesWhatIsNoImageOrNoDepth) {
  const auto refusal = [](void (*spoil)(ResnetSpec&)) {
    ResnetSpec spec = SmallResnet();
    spoil(spec);
    return std::string(ExpandModel(spec).status().message());
  };
  EXPECT_EQ(refusal([](ResnetSpec& s) { s.depth = 18; }),
            "model.resnet.depth: 18; must be 6n + 2, as 14 or 20");
  EXPECT_EQ(refusal([](ResnetSpec& s) {
              s.image = {32, 32};
            }),
            "model.resnet.image: 2 numbers; give [height, width, channels]");
  EXPECT_EQ(refusal([](ResnetSpec& s) {
              s.image = {1 << 14, 1 << 14, 3};
            }),
            "model.resnet.image: activation[n, 16384, 16384, 3]; has 805306368 numbers a "
            "sample; at most 268435456");
  EXPECT_EQ(refusal([](ResnetSpec& s) { s.classes = 1; }), "model.resnet.classes: 1; must be >= 2");
}

}  // namespace
}  // namespace stagecoach
