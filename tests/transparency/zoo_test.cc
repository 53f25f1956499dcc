// Every network that a job can name trains with the same bits however it is cut and run: the list is the registry's, so
// a new entry needs a row here. Each also with frozen layers; dropout and batch norm's averages are in it. Processes
// that are killed are in tests/e2e/zoo_test.py.
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "network/freeze.h"
#include "network/layers/batch_norm.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/relu.h"
#include "network/layers/residual.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "network/zoo/llama.h"
#include "network/zoo/mlp.h"
#include "network/zoo/resnet.h"
#include "network/zoo/sequence.h"
#include "tests/transparency/every_pipeline.h"

namespace stagecoach {
namespace {

struct ZooEntry {
  std::string name;
  ModelSpec model;
  // In front, so that the first of four stages has forwards alone, and a part of a layer behind.
  std::vector<std::string> frozen;
  friend void PrintTo(const ZooEntry& entry, std::ostream* out) { *out << entry.name; }
};

// Tiny, and odd enough that tiles have remainders.
std::vector<ZooEntry> ZooEntries() {
  const LayerSpec block = ResidualSpec{
      {BatchNormSpec{.momentum = 0.3}, LinearSpec{.out = 41}, ReluSpec{}, LinearSpec{.out = 36}}};
  return {
      {"gpt",
       GptSpec{
           .layers = 2, .width = 21, .heads = 3, .context = 11, .vocabulary = 37, .dropout = 0.2},
       {"model/0000/*", "model/0001/*", "model/0003/attention.qkv.*"}},
      {"llama",
       LlamaSpec{.layers = 2,
                 .width = 24,
                 .heads = 6,
                 .key_heads = 2,
                 .head_width = 10,
                 .hidden = 33,
                 .context = 13,
                 .vocabulary = 31,
                 .qk_norm = true},
       {"model/0000/*", "model/0001/*", "*.gate.weight"}},
      {"mlp",
       MlpNetworkSpec{.image = {7, 5, 3}, .hidden = 41, .layers = 3, .classes = 10},
       {"model/0001/*", "model/0003/bias"}},
      {"resnet",
       ResnetSpec{.image = {9, 7, 3}, .classes = 5, .depth = 8, .width = 6},
       {"model/0000/*", "model/0001/*", "model/0002/first.*"}},
      {"sequence",
       SequenceSpec{.width = 36,
                    .context = 11,
                    .vocabulary = 17,
                    .layers = {EmbeddingSpec{.dropout = 0.1}, block, DropoutSpec{.rate = 0.2},
                               BatchNormSpec{}, ReluSpec{}, block, LinearSpec{.out = 17}}},
       {"model/0000/*", "model/0001/*", "model/0005/batch_norm.weight"}}};
}

TEST(Zoo, EveryNetworkThatAJobCanNameHasARowInThisTest) {
  std::set<std::string> rows, known;
  for (const ZooEntry& entry : ZooEntries()) rows.insert(entry.model.kind);
  for (const NetworkKind* kind : AllNetworkKinds()) known.emplace(kind->name());
  EXPECT_EQ(rows, known);
}

class Zoo : public testing::TestWithParam<std::tuple<ZooEntry, Precision>> {
 protected:
  static const ZooEntry& entry() { return std::get<ZooEntry>(GetParam()); }
  static Network Whole() {
    auto network = ExpandModel(entry().model, std::get<Precision>(GetParam()));
    CHECK_OK(network.status());
    return *std::move(network);
  }
};

TEST_P(Zoo, HasTheSameBitsInEveryPipeline) { ExpectTheSameBitsInEveryPipeline(Whole()); }

TEST_P(Zoo, HasTheSameBitsInEveryPipelineWithFrozenLayers) {
  const auto frozen = Freeze(Whole(), entry().frozen, "training.freeze");
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  const int layers = static_cast<int>(frozen->layers.size());
  const Partition four = *UniformPartition(layers, 4);
  EXPECT_GT(FirstBackwardStage(*frozen, four), 0) << "no stage has forwards alone";
  ExpectTheSameBitsInEveryPipeline(*frozen);
}

TEST_P(Zoo, HasTheReferencesLossesOnEachDevice) { ExpectTheReferencesLosses(Whole()); }

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
