// What is tuned, and where; the loop itself is tested beside its source.
#include "bench/operations/tune_products.h"

#include <set>

#include "base/errors/check.h"
#include "bench/operations/measured_networks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "stage/backends/backend.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TuneProducts, IsForCardsAlone) {
  EXPECT_TRUE(CheckTunable("cuda").ok());
  EXPECT_TRUE(CheckTunable("cuda:1").ok());
  const absl::Status status = CheckTunable("cpu");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("only cards have a choice of matrix algorithms, and --device=cpu is none"));
  const auto backend = MakeReferenceBackend({});
  EXPECT_EQ(ProductTuner::Make(*backend, 0.1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(TuneProducts, LinearCallsAreTheProductsOfAGpt) {
  const GptSpec gpt{.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 11};
  std::set<std::string> names;
  for (const NetworkCall& call : NetworkCalls(*ExpandNetwork(gpt), 3)) {
    if (IsLinear(call)) names.insert(call.call.operation);
  }
  EXPECT_THAT(names, ElementsAre("linear", "linear_input_gradient", "linear_weight_gradient"));
}

TEST(MeasuredNetworks, AreChosenByNameWithTheSamplesThatAreAskedFor) {
  const auto own = ChosenNetworks("tiny_gpt,tiny_resnet", 0, Precision::kFloat32);
  const auto other = ChosenNetworks("tiny_gpt", 7, Precision::kBfloat16);
  ASSERT_TRUE(own.ok() && other.ok());
  EXPECT_EQ((*own)[1].name, "tiny_resnet");
  EXPECT_EQ((*own)[1].samples, 4);
  EXPECT_EQ((*other)[0].samples, 7);
  EXPECT_THAT(std::string(ChosenNetworks("gpt3", 0, Precision::kFloat32).status().message()),
              HasSubstr("--networks: \"gpt3\" is none of gpt2_1.5b, gpt2_124m, resnet_50"));
}

std::vector<int64_t> SizesOf(int64_t batch_size, int64_t micro_batches, int64_t samples) {
  JobSpec job;
  job.name = "mine";
  job.network = GptSpec{.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 11};
  job.training.batch_size = batch_size;
  job.training.micro_batches = micro_batches;
  std::vector<int64_t> sizes;
  const auto networks = NetworksOfJob(job, samples);
  CHECK_OK(networks.status());
  for (const MeasuredNetwork& network : *networks) {
    EXPECT_EQ(network.name, "mine");
    sizes.push_back(network.samples);
  }
  return sizes;
}

TEST(MeasuredNetworks, OfAJobHaveTheSizesOfItsMicroBatches) {
  EXPECT_THAT(SizesOf(12, 4, 0), ElementsAre(3));
  EXPECT_THAT(SizesOf(14, 4, 0), ElementsAre(4, 3));
  EXPECT_THAT(SizesOf(3, 1, 0), ElementsAre(3));
  EXPECT_THAT(SizesOf(14, 4, 9), ElementsAre(9));
}

}  // namespace
}  // namespace stagecoach
