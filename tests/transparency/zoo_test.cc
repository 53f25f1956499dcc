// Every network that a job can name trains with the same bits however it is cut and run: the list
// is the registry's, so a new entry needs a row here. Each also with frozen layers; dropout and
// batch norm's averages are in it. Processes that are killed are in tests/e2e/zoo_test.py.
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "gtest/gtest.h"
#include "network/network_kinds.h"
#include "network/passes/freeze.h"
#include "network/zoo/every_network_testing.h"
#include "tests/transparency/every_pipeline.h"

namespace stagecoach {
namespace {

TEST(Zoo, EveryNetworkThatAJobCanNameHasARowInThisTest) {
  std::set<std::string> rows, known;
  for (const ZooEntry& entry : ZooEntries()) rows.insert(entry.spec.kind);
  for (const NetworkKind* kind : AllNetworkKinds()) known.emplace(kind->name());
  EXPECT_EQ(rows, known);
}

class Zoo : public testing::TestWithParam<std::tuple<ZooEntry, Precision>> {
 protected:
  static const ZooEntry& entry() { return std::get<ZooEntry>(GetParam()); }
  static Network Whole() {
    auto network = ExpandNetwork(entry().spec, std::get<Precision>(GetParam()));
    CHECK_OK(network.status());
    return *std::move(network);
  }
};

TEST_P(Zoo, HasTheSameBitsInEveryPipeline) { ExpectTheSameBitsInEveryPipeline(Whole()); }

TEST_P(Zoo, HasTheSameBitsInEveryPipelineWithFrozenLayers) {
  if (kSanitized && std::get<Precision>(GetParam()) == Precision::kBfloat16)
    return;  // the code has run
  const auto frozen = Freeze(Whole(), entry().frozen, "training.freeze");
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  const int layers = static_cast<int>(frozen->layers.size());
  const Partition four = *UniformPartition(layers, 4);
  EXPECT_GT(FitToNetwork(*frozen, four, {.stages = 4}).first_backward, 0)
      << "no stage has forwards alone";
  ExpectTheSameBitsInEveryPipeline(*frozen);
}

TEST_P(Zoo, HasTheReferencesLossesOnEachDevice) {
  if (entry().has_kinks) {
    ExpectTheReferencesFirstStep(Whole());
  } else {
    ExpectTheReferencesLosses(Whole());
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Zoo,
                         testing::Combine(testing::ValuesIn(ZooEntries()),
                                          testing::Values(Precision::kFloat32,
                                                          Precision::kBfloat16)),
                         [](const auto& info) {
                           return std::get<ZooEntry>(info.param).name + "_" +
                                  PrecisionName(std::get<Precision>(info.param));
                         });

}  // namespace
}  // namespace stagecoach
