// What weights of a unet hang on: layers, names, shapes and their number; its skips; what it
// refuses.
#include "network/zoo/unet.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/golden_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/lists/lists.h"
#include "network/names/network_text.h"
#include "network/network_kinds.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

using testing::Contains;
using testing::ElementsAre;

UnetSpec SmallUnet() { return {.image = {8, 12, 3}, .channels_out = 5, .base = 4, .depth = 2}; }

// Of weights and biases, without what norms have.
int64_t ParametersBesideNorms(const Network& network) {
  int64_t elements = 0;
  for (const NetworkLayer& layer : network.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (!absl::StrContains(parameter.name, "norm")) elements += parameter.shape.elements();
    }
  }
  return elements;
}

TEST(Unet, TextStaysAsItIs) {
  ExpectGolden("network_text_unet.txt", CanonicalNetworkText(ExpandedOf(SmallUnet())));
  UnetSpec nearest = SmallUnet();
  nearest.upsample = UnetUpsample::kNearest;
  nearest.norm = UnetNorm::kNone;
  nearest.convolutions = 3;
  ExpectGolden("network_text_unet_nearest.txt", CanonicalNetworkText(ExpandedOf(nearest)));
}

TEST(Unet, ListsOfItsDecoderStayAsTheyAre) {
  UnetSpec spec = SmallUnet();
  spec.norm = UnetNorm::kNone;
  spec.convolutions = 1;
  ExpectGolden("lists/unet_transposed.txt", FormatLists(*ExpandedOf(spec).layers[3].lists));
  spec.upsample = UnetUpsample::kNearest;
  ExpectGolden("lists/unet_nearest.txt", FormatLists(*ExpandedOf(spec).layers[3].lists));
}

// Two levels: at the bottom both skips cross a cut beside what the cell gives.
TEST(Unet, SkipsRideAlongToTheDecoder) {
  const Network network = ExpandedOf(SmallUnet());
  EXPECT_THAT(LabelsOf(network),
              ElementsAre("encoder", "encoder", "bottom", "decoder", "decoder", "head"));
  const int64_t first = 4 * 8 * 12 * 4, second = 4 * 4 * 6 * 8, bottom = 4 * 2 * 3 * 16;
  EXPECT_THAT(CutBytes(network), ElementsAre(first, first + second, first + second + bottom,
                                             first + second, first, 4 * 8 * 12 * 5));
  EXPECT_EQ(network.input(network.objective.targets).name, "masks");
  EXPECT_EQ(network.classes(), 5);
  EXPECT_THAT(network.objective.sums, Contains("accuracy"));
}

// torchgpipe's U-Net(5, 64) and the five of its table of memory: 362.2 million, and 2.21, 4.99,
// 7.80 and 15.82 thousand millions. Its instance norms have no weights and its last convolution has
// no bias, so both are left out here.
TEST(Unet, HasTheParametersOfTorchgpipesConvolutions) {
  const auto parameters = [](int64_t convolutions, int64_t base) {
    return ParametersBesideNorms(ExpandedOf(UnetSpec{.image = {192, 192, 3},
                                                     .channels_out = 2,
                                                     .base = base,
                                                     .depth = 5,
                                                     .convolutions = convolutions,
                                                     .upsample = UnetUpsample::kNearest}));
  };
  // It gives one channel, and a network with classes two at least.
  const auto second_class = [](int64_t base) { return base / 2 + 2; };
  EXPECT_EQ(parameters(5, 64) - second_class(64), 232'687'328);
  EXPECT_EQ(parameters(6, 72) - second_class(72), 362'157'516);
  EXPECT_EQ(parameters(11, 128) - second_class(128), 2'213'834'176);
  EXPECT_EQ(parameters(24, 128) - second_class(128), 4'993'859'008);
  EXPECT_EQ(parameters(24, 160) - second_class(160), 7'802'903'600);
  EXPECT_EQ(parameters(48, 160) - second_class(160), 15'822'206'000);
}

// Ronneberger's, as it is commonly written with batch norm and padding: 31,037,698 with two classes
// on three channels, of which 960 are biases of its transposed convolutions.
TEST(Unet, OfFourLevelsWithBatchNormHas31036738Parameters) {
  const UnetSpec spec{.image = {64, 96, 3}, .channels_out = 2, .base = 64, .depth = 4};
  EXPECT_EQ(ParametersOf(ExpandedOf(spec)), 31'037'698 - 960);
}

TEST(Unet, RefusesWhatItsLevelsCannotHalve) {
  const auto refusal = [](void (*spoil)(UnetSpec&)) {
    UnetSpec spec = SmallUnet();
    spoil(spec);
    return std::string(ExpandNetwork(spec).status().message());
  };
  EXPECT_EQ(refusal([](UnetSpec& s) { s.depth = 3; }),
            "model.unet.image: 8x12; is halved 3 times; give a height and a width that are "
            "multiples of 8");
  EXPECT_EQ(refusal([](UnetSpec& s) { s.base = 1 << 15; }),
            "model.unet.base: 32768; must be <= 16384 with depth 2: it is doubled with each level");
  EXPECT_EQ(refusal([](UnetSpec& s) {
              s.base = 3;
              s.upsample = UnetUpsample::kNearest;
            }),
            "model.unet.base: 3; must be even with upsample nearest: the last cell gives half as "
            "many");
  EXPECT_EQ(refusal([](UnetSpec& s) { s.channels_out = 1; }),
            "model.unet.channels_out: 1; must be >= 2");
}

}  // namespace
}  // namespace stagecoach
