// Names of arrays in other programs, and how these lay them out.
#include "network/names/weight_names.h"

#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/golden_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/zoo/every_network_testing.h"
#include "network/zoo/resnet.h"
#include "network/zoo/vit.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

ResnetSpec Imagenet(int64_t depth) {
  return {.image = {64, 64, 3},
          .classes = 10,
          .depth = depth,
          .width = 4,
          .form = ResnetForm::kImagenet};
}

VitSpec NamedVit() {
  return {.image = {6, 9, 2},
          .classes = 5,
          .patch = 3,
          .layers = 2,
          .width = 8,
          .heads = 2,
          .hidden = 12,
          .dropout = 0.1};
}

std::string TextOf(const Network& network, const char* table = "torchvision") {
  std::string text;
  const std::vector<WeightName> names = *WeightNames(network, table);
  for (const WeightName& name : names) {
    absl::StrAppend(&text, name.other, " ", name.OtherShape().ToString(), " is ", name.ours, " ",
                    name.shape.ToString(), name.older.empty() ? "" : ", once ", name.older, "\n");
  }
  return text;
}

std::string NamesRefusal(const Network& network, const char* table = "torchvision") {
  return std::string(WeightNames(network, table).status().message());
}

TEST(WeightNames, OfTorchvisionsResnetsStayAsTheyAre) {
  ExpectGolden("weight_names_resnet18.txt", TextOf(ExpandedOf(Imagenet(18))));
  ExpectGolden("weight_names_resnet50.txt", TextOf(ExpandedOf(Imagenet(50))));
}

TEST(WeightNames, OfTransformersStayAsTheyAre) {
  ExpectGolden("weight_names_vit_torchvision.txt", TextOf(ExpandedOf(NamedVit())));
  ExpectGolden("weight_names_vit_timm.txt", TextOf(ExpandedOf(NamedVit()), "timm"));
}

TEST(WeightNames, OfTimmsResnetsAreTorchvisions) {
  const Network network = ExpandedOf(Imagenet(50));
  EXPECT_EQ(TextOf(network, "timm"), TextOf(network));
}

void ExpectEveryNumberOnce(const Network& network, const char* table) {
  std::set<std::string> ours, others;
  int64_t numbers = 0;
  const std::vector<WeightName> names = *WeightNames(network, table);
  for (const WeightName& name : names) {
    EXPECT_TRUE(ours.insert(name.ours).second) << name.ours;
    EXPECT_TRUE(others.insert(name.other).second) << name.other;
    EXPECT_EQ(name.OtherShape().elements(), name.shape.elements()) << name.ours;
    if (!name.ours.ends_with("running_mean") && !name.ours.ends_with("running_variance")) {
      numbers += name.shape.elements();
    }
  }
  EXPECT_EQ(numbers, ParametersOf(network));
}

TEST(WeightNames, OfEveryDepthAreThere) {
  for (const int64_t depth : {18, 34, 50, 101, 152}) {
    SCOPED_TRACE(depth);
    ExpectEveryNumberOnce(ExpandedOf(Imagenet(depth)), "torchvision");
  }
  const Network base = ExpandedOf(
      VitSpec{.image = {224, 224, 3}, .classes = 1000, .layers = 12, .width = 768, .heads = 12});
  ExpectEveryNumberOnce(base, "torchvision");
  ExpectEveryNumberOnce(base, "timm");
}

TEST(WeightNames, OfOurOwnAreThoseOfEveryNetwork) {
  for (const ZooEntry& entry : ZooEntries()) {
    SCOPED_TRACE(entry.name);
    const auto names = WeightNames(ExpandedOf(entry.spec), "stagecoach");
    ASSERT_TRUE(names.ok()) << names.status();
    for (const WeightName& name : *names) {
      EXPECT_EQ(name.other, name.ours);
      EXPECT_EQ(name.OtherShape(), name.shape);
    }
  }
}

// One channel of one filter stands as a whole in PyTorch, and channels stand side by side here.
TEST(WeightNames, AConvolutionsWeightIsLaidOutAsPyTorchHasIt) {
  const WeightName name{.layout = WeightLayout::kChannelsFirst, .shape = {2, 3, 4, 5}};
  EXPECT_EQ(name.OtherShape(), Shape({2, 5, 3, 4}));
  std::vector<float> ours(2 * 3 * 4 * 5), other(ours.size()), back(ours.size());
  std::iota(ours.begin(), ours.end(), 0.0f);
  ToOtherLayout(name, ours, other);
  // [o=1, i=2, h=0, w=3] of the other is [o=1, h=0, w=3, i=2] of ours.
  EXPECT_EQ(other[((1 * 5 + 2) * 3 + 0) * 4 + 3], ours[((1 * 3 + 0) * 4 + 3) * 5 + 2]);
  FromOtherLayout(name, other, back);
  EXPECT_EQ(back, ours);
}

TEST(WeightNames, OfTorchvisionAreRefusedForNetworksThatItHasNot) {
  EXPECT_THAT(
      NamesRefusal(
          ExpandedOf(GptSpec{.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 10})),
      HasSubstr("the network is none that torchvision has names for: it does not begin with "
                "the stem imagenet; a resnet with form: imagenet and norm: batch is, and a vit"));
  ResnetSpec groups = Imagenet(18);
  groups.norm = ResnetNorm::kGroup;
  groups.groups = 2;
  EXPECT_THAT(NamesRefusal(ExpandedOf(groups)), HasSubstr("it has group_norm.weight"));
  // These were written as layer1 to layer3, which load_state_dict refuses.
  EXPECT_THAT(NamesRefusal(ExpandedOf(
                  ResnetSpec{.image = {32, 32, 3}, .classes = 10, .stem = ResnetStem::kImagenet})),
              HasSubstr("it has 3 stages of blocks and not 4: form: imagenet has these"));
  EXPECT_EQ(NamesRefusal(ExpandedOf(Imagenet(18)), "torchvison"),
            "there is no table of names \"torchvison\"; did you mean \"torchvision\"?");
  EXPECT_EQ(NamesRefusal(ExpandedOf(Imagenet(18)), "onnx"),
            "there is no table of names \"onnx\"; known here: stagecoach, timm, torchvision");
}

}  // namespace
}  // namespace stagecoach
