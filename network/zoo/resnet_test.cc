// What weights of a resnet hang on: layers, names, shapes and their number; where it may be cut;
// how they begin.
#include "network/zoo/resnet.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/golden_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/names/network_text.h"
#include "network/network_kinds.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

ResnetSpec SmallResnet() { return {.image = {9, 7, 3}, .classes = 5, .depth = 8, .width = 4}; }

TEST(Resnet, TextStaysAsItIs) {
  ExpectGolden("network_text_resnet.txt", CanonicalNetworkText(ExpandedOf(SmallResnet())));
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

// ResNet-20 on CIFAR, n = 3, with 1x1 projections. Stem 3*3*3*16 + 2*16 = 464. First stage, three
// blocks of 2 * 9*16*16 + 4*16 = 4672: 14,016. Second, 9*16*32 + 9*32*32 + 4*32 and its projection
// 16*32 + 2*32, then two of 2 * 9*32*32 + 4*32: 14,528 + 2 * 18,560 = 51,648. Third alike: 57,728 +
// 2 * 73,984 = 205,696. Head 64*10 + 10 = 650.
TEST(Resnet, Of20LayersHas272474Parameters) {
  const Network network =
      ExpandedOf(ResnetSpec{.image = {32, 32, 3}, .classes = 10, .depth = 20, .width = 16});
  EXPECT_EQ(network.layers.size(), 11u);
  EXPECT_EQ(ParametersOf(network), 464 + 14'016 + 51'648 + 205'696 + 650);
  EXPECT_EQ(ParametersOf(network), 272'474);
}

// torchvision's numbers, of 1000 classes. Layers: stem, blocks, head.
TEST(Resnet, ForImagenetHasThePublishedParameters) {
  struct Published {
    int64_t depth, parameters;
    size_t layers;
  };
  for (const Published& published :
       {Published{18, 11'689'512, 10}, Published{34, 21'797'672, 18}, Published{50, 25'557'032, 18},
        Published{101, 44'549'160, 35}, Published{152, 60'192'808, 52}}) {
    SCOPED_TRACE(published.depth);
    const Network network = ExpandedOf(ResnetSpec{.image = {224, 224, 3},
                                                  .classes = 1000,
                                                  .depth = published.depth,
                                                  .form = ResnetForm::kImagenet});
    EXPECT_EQ(ParametersOf(network), published.parameters);
    EXPECT_EQ(network.layers.size(), published.layers);
  }
}

// 112x112 behind the stem's convolution, 56x56 behind its pool; each stage ends with half of it and
// twice the channels.
TEST(Resnet, ForImagenetHalvesTheImageFiveTimes) {
  const Network network = ExpandedOf(ResnetSpec{
      .image = {224, 224, 3}, .classes = 1000, .depth = 50, .form = ResnetForm::kImagenet});
  const auto shape_behind = [&network](size_t layer) {
    return network.wire(network.layers[layer].outputs[0]).type.shape;
  };
  EXPECT_EQ(shape_behind(0), Shape({56, 56, 64}));
  EXPECT_EQ(shape_behind(3), Shape({56, 56, 256}));
  EXPECT_EQ(shape_behind(7), Shape({28, 28, 512}));
  EXPECT_EQ(shape_behind(13), Shape({14, 14, 1024}));
  EXPECT_EQ(shape_behind(16), Shape({7, 7, 2048}));
  EXPECT_EQ(shape_behind(17), Shape({1000}));
}

// 50 is 6 * 8 + 2 too: jobs that give no form keep their network.
TEST(Resnet, Of50LayersIsTheFormForSmallImagesUnlessAskedForTheOther) {
  const ResnetSpec small{.image = {32, 32, 3}, .classes = 10, .depth = 50};
  EXPECT_EQ(ExpandedOf(small).layers.size(), 26u);
  EXPECT_EQ(ExpandedOf(small).layers[1].label, "basic_block");
  ResnetSpec large = small;
  large.form = ResnetForm::kImagenet;
  EXPECT_EQ(ExpandedOf(large).layers[1].label, "bottleneck");
}

ResnetSpec SmallBottlenecks() {
  return {.image = {33, 35, 3},
          .classes = 5,
          .depth = 50,
          .width = 4,
          .form = ResnetForm::kImagenet,
          .norm = ResnetNorm::kGroup,
          .groups = 2,
          .drop_path = 0.32};
}

TEST(Resnet, TextOfBottlenecksStaysAsItIs) {
  ExpectGolden("network_text_resnet_bottlenecks.txt",
               CanonicalNetworkText(ExpandedOf(SmallBottlenecks())));
}

// Stochastic depth is how a network is trained; the n-th of 16 blocks has n sixteenths of the rate.
TEST(Resnet, LeavesBranchesOutTheMoreTheDeeperTheyAre) {
  const auto rates = [](const ResnetSpec& spec) {
    std::vector<std::string> found;
    for (const NetworkLayer& layer : ExpandedOf(spec).layers) {
      for (const Call& call : layer.graph->calls) {
        if (call.operation == "drop_path") found.push_back(FormatAttributes(call.attributes));
      }
    }
    return found;
  };
  ResnetSpec spec = SmallBottlenecks();
  EXPECT_THAT(rates(spec), testing::SizeIs(16));
  EXPECT_EQ(rates(spec).front(), "rate=0.02");
  EXPECT_EQ(rates(spec).back(), "rate=0.32");
  const std::string text = CanonicalNetworkText(ExpandedOf(spec));
  spec.drop_path = 0;
  EXPECT_THAT(rates(spec), testing::IsEmpty());
  EXPECT_EQ(CanonicalNetworkText(ExpandedOf(spec)), text);
}

TEST(Resnet, BlocksBeginAsTheirShortcutsWhereAskedFor) {
  const auto zeros = [](const ResnetSpec& spec) {
    std::vector<std::string> names;
    for (const NetworkLayer& layer : ExpandedOf(spec).layers) {
      for (const ParameterSpec& parameter : layer.parameters) {
        if (parameter.init == ParameterSpec::Init::kZeros &&
            parameter.name.ends_with("norm.weight")) {
          names.push_back(parameter.name);
        }
      }
    }
    return names;
  };
  ResnetSpec spec = SmallResnet();
  EXPECT_THAT(zeros(spec), testing::IsEmpty());
  spec.zero_init_residual = true;
  EXPECT_THAT(zeros(spec), ElementsAre("model/0001/second.batch_norm.weight",
                                       "model/0002/second.batch_norm.weight",
                                       "model/0003/second.batch_norm.weight"));
  spec = SmallBottlenecks();
  spec.zero_init_residual = true;
  ASSERT_THAT(zeros(spec), testing::SizeIs(16));
  EXPECT_EQ(zeros(spec)[0], "model/0001/third.group_norm.weight");
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
    return std::string(ExpandNetwork(spec).status().message());
  };
  EXPECT_EQ(
      refusal([](ResnetSpec& s) { s.depth = 18; }),
      "model.resnet.depth: 18; must be 6n + 2, as 14 or 20; or is it the one for ImageNet? Give "
      "form: imagenet");
  EXPECT_EQ(refusal([](ResnetSpec& s) { s.depth = 19; }),
            "model.resnet.depth: 19; must be 6n + 2, as 14 or 20");
  EXPECT_EQ(refusal([](ResnetSpec& s) { s.form = ResnetForm::kImagenet; }),
            "model.resnet.depth: 8; must be 18, 34, 50, 101 or 152 with form: imagenet");
  EXPECT_EQ(refusal([](ResnetSpec& s) { s.norm = ResnetNorm::kGroup; }),
            "model.resnet.groups: 32; must divide the 4 channels of the first stage, the width");
  EXPECT_EQ(refusal([](ResnetSpec& s) { s.groups = 2; }),
            "model.resnet.groups: 2; batch norm has no groups: give norm: group with it");
  EXPECT_EQ(refusal([](ResnetSpec& s) {
              s.form = ResnetForm::kImagenet;
              s.depth = 50;
              s.width = 2049;
            }),
            "model.resnet.width: 2049; the last stage would give 65568 channels; at most 65536");
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
