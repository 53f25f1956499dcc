// What weights of a vit hang on: layers, names, shapes and their number; how they begin; what it
// refuses.
#include "network/zoo/vit.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/golden_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/lists/lists.h"
#include "network/names/network_text.h"
#include "network/network_kinds.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

VitSpec SmallVit() {
  return {.image = {6, 9, 2},
          .classes = 5,
          .patch = 3,
          .layers = 1,
          .width = 8,
          .heads = 2,
          .hidden = 12};
}
VitSpec VitOn224(int64_t patch, int64_t layers, int64_t width, int64_t heads) {
  return {.image = {224, 224, 3},
          .classes = 1000,
          .patch = patch,
          .layers = layers,
          .width = width,
          .heads = heads};
}

TEST(Vit, TextStaysAsItIs) {
  ExpectGolden("network_text_vit.txt", CanonicalNetworkText(ExpandedOf(SmallVit())));
}

TEST(Vit, ListsOfItsEndsStayAsTheyAre) {
  const Network network = ExpandedOf(SmallVit());
  ExpectGolden("lists/vit_embedding.txt", FormatLists(*network.layers.front().lists));
  ExpectGolden("lists/vit_attention.txt", FormatLists(*network.layers[1].lists));
  ExpectGolden("lists/vit_mlp.txt", FormatLists(*network.layers[2].lists));
  ExpectGolden("lists/vit_head.txt", FormatLists(*network.layers.back().lists));
}

TEST(Vit, IsCutBetweenItsBranches) {
  const Network network = ExpandedOf(SmallVit());
  EXPECT_THAT(LabelsOf(network), ElementsAre("patch_embedding", "residual(layer_norm, attention)",
                                             "residual(layer_norm, mlp)", "head"));
  // Six patches and the class token, and the logits.
  EXPECT_THAT(CutBytes(network), ElementsAre(4 * 7 * 8, 4 * 7 * 8, 4 * 7 * 8, 4 * 5));
  EXPECT_EQ(network.targets(), 1);
  EXPECT_EQ(network.classes(), 5);
}

// Published by torchvision as vit_b_16, vit_b_32 and vit_l_16, and by timm; ViT-H/14 at 224 as
// vit_h_14's 632,045,800 with 1000 classes. ViT-B/16: patches 768 * 3 * 16 * 16 + 768, class token
// 768, positions 197 * 768, a block 2 * 2 * 768 + 768 * 2304 + 2304 + 768 * 768 + 768 + 2 * 768 *
// 3072 + 3072 + 768 = 7,087,872, norm 1536, head 769,000.
TEST(Vit, HasTheParametersOfThePublishedNetworks) {
  const Network base = ExpandedOf(VitOn224(16, 12, 768, 12));
  EXPECT_EQ(ParametersOf(base), 590'592 + 768 + 151'296 + 12 * 7'087'872 + 1'536 + 769'000);
  EXPECT_EQ(ParametersOf(base), 86'567'656);
  EXPECT_EQ(base.layers.size(), 26u);
  EXPECT_EQ(ParametersOf(ExpandedOf(VitOn224(32, 12, 768, 12))), 88'224'232);
  EXPECT_EQ(ParametersOf(ExpandedOf(VitOn224(16, 24, 1024, 16))), 304'326'632);
  EXPECT_EQ(ParametersOf(ExpandedOf(VitOn224(32, 24, 1024, 16))), 306'535'400);
  EXPECT_EQ(ParametersOf(ExpandedOf(VitOn224(14, 32, 1280, 16))), 632'045'800);
}

TEST(Vit, BeginsAsTorchvisionsDoes) {
  const Network network = ExpandedOf(SmallVit());
  const std::vector<ParameterSpec>& first = network.layers[0].parameters;
  ASSERT_EQ(first.size(), 4u);
  EXPECT_EQ(first[0].name, "model/0000/patch.weight");
  EXPECT_DOUBLE_EQ(first[0].init_stddev, std::sqrt(1.0 / (3 * 3 * 2)));
  EXPECT_EQ(first[2].name, "model/0000/class_token");
  EXPECT_EQ(first[2].init, ParameterSpec::Init::kZeros);
  EXPECT_EQ(first[3].name, "model/0000/position");
  EXPECT_EQ(first[3].shape, Shape({7, 8}));
  EXPECT_DOUBLE_EQ(first[3].init_stddev, 0.02);
}

TEST(Vit, RefusesWhatHasNoWholePatchesOrHeads) {
  const auto refusal = [](void (*spoil)(VitSpec&)) {
    VitSpec spec = SmallVit();
    spoil(spec);
    return std::string(ExpandNetwork(spec).status().message());
  };
  EXPECT_EQ(refusal([](VitSpec& s) { s.patch = 2; }),
            "model.vit.patch: 2; must divide the sides of the image, 6x9");
  EXPECT_EQ(refusal([](VitSpec& s) { s.heads = 3; }),
            "model.vit.heads: 3; must divide the width 8");
  EXPECT_EQ(refusal([](VitSpec& s) {
              s.image = {256, 256, 3};
              s.patch = 1;
            }),
            "model.vit.patch: 1; gives 65536 patches; must be below 65536: take larger ones");
  EXPECT_EQ(refusal([](VitSpec& s) { s.classes = 1; }), "model.vit.classes: 1; must be >= 2");
}

// A stage refused it, when it loaded its cell, and did not say what was too large.
TEST(Vit, RefusesAnEmbeddingThatIsTooLarge) {
  VitSpec spec = SmallVit();
  spec.image = {2048, 2048, 3};
  spec.patch = 1024;
  spec.width = 65536;
  spec.heads = 1;
  EXPECT_THAT(std::string(ExpandNetwork(spec).status().message()),
              testing::HasSubstr("patch.weight would have 206158430208 elements; at most"));
}

}  // namespace
}  // namespace stagecoach
