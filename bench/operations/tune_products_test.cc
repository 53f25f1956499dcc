// What is tuned, and where; the loop itself is tested beside its source.
#include "bench/operations/tune_products.h"

#include <set>

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
  for (const NetworkCall& call : NetworkCalls(*ExpandModel(gpt))) {
    if (IsLinear(call)) names.insert(call.call.operation);
  }
  EXPECT_THAT(names, ElementsAre("linear", "linear_input_gradient", "linear_weight_gradient"));
}

TEST(TuneProducts, NetworksAreChosenByNameWithTheSamplesThatAreAskedFor) {
  const auto own = ChosenNetworks("tiny_gpt,gpt2_1.5b", 0), other = ChosenNetworks("tiny_gpt", 7);
  ASSERT_TRUE(own.ok() && other.ok());
  EXPECT_STREQ((*own)[1].name, "gpt2_1.5b");
  EXPECT_EQ((*own)[1].samples, 8);
  EXPECT_EQ((*other)[0].samples, 7);
  EXPECT_THAT(std::string(ChosenNetworks("gpt3", 0).status().message()),
              HasSubstr("--networks: \"gpt3\" is none of gpt2_1.5b, gpt2_124m, resnet_50"));
}

}  // namespace
}  // namespace stagecoach
