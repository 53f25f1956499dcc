// Networks of all kinds of layers train with the same bits however they are cut and run, and on
// each device as on the reference one.
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layer_kinds.h"
#include "network/network_kinds.h"
#include "network/zoo/every_network_testing.h"
#include "tests/transparency/every_pipeline.h"

namespace stagecoach {
namespace {

void CollectKinds(const std::vector<LayerSpec>& layers, std::set<std::string>* kinds) {
  for (const LayerSpec& layer : layers) {
    kinds->insert(layer.kind);
    CollectKinds(layer.layers, kinds);
  }
}

TEST(EveryKindOfLayer, IsInANetworkOfTheseTests) {
  std::set<std::string> listed, known;
  for (const ListedKinds& trained : ListsOfEveryKind()) CollectKinds(trained.list.layers, &listed);
  for (const LayerKind* kind : AllLayerKinds()) known.emplace(kind->name());
  EXPECT_EQ(listed, known);
}

class EveryKindIn : public testing::TestWithParam<std::tuple<ListedKinds, Precision>> {
 protected:
  static Network Expanded() {
    auto network =
        ExpandNetwork(std::get<ListedKinds>(GetParam()).list, std::get<Precision>(GetParam()));
    CHECK_OK(network.status());
    return *std::move(network);
  }
};

TEST_P(EveryKindIn, HasTheSameBitsInEveryPipeline) { ExpectTheSameBitsInEveryPipeline(Expanded()); }

TEST_P(EveryKindIn, HasTheReferencesLossesOnEachDevice) { ExpectTheReferencesLosses(Expanded()); }

INSTANTIATE_TEST_SUITE_P(Lists, EveryKindIn,
                         testing::Combine(testing::ValuesIn(ListsOfEveryKind()),
                                          testing::Values(Precision::kFloat32,
                                                          Precision::kBfloat16)),
                         [](const auto& info) {
                           return std::get<ListedKinds>(info.param).name + "_" +
                                  PrecisionName(std::get<Precision>(info.param));
                         });

}  // namespace
}  // namespace stagecoach
