#include "network/zoo/mlp.h"

#include "base/golden_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/names/network_text.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

TEST(MlpNetwork, IsLinearLayersWithAReluBehindEachButTheLast) {
  const Network network =
      ExpandedOf(MlpNetworkSpec{.image = {5, 4, 1}, .hidden = 8, .layers = 3, .classes = 3});
  EXPECT_THAT(LabelsOf(network),
              ElementsAre("flatten", "linear", "relu", "linear", "relu", "linear"));
  EXPECT_EQ(ParametersOf(network), 20 * 8 + 8 + 8 * 8 + 8 + 8 * 3 + 3);
  ExpectGolden("network_text_mlp.txt", CanonicalNetworkText(network));
}

TEST(MlpNetwork, OfOneLayerIsLinear) {
  const Network network =
      ExpandedOf(MlpNetworkSpec{.image = {28, 28, 1}, .hidden = 1, .layers = 1, .classes = 10});
  EXPECT_EQ(ParametersOf(network), 784 * 10 + 10);
}

}  // namespace
}  // namespace stagecoach
