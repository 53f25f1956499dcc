// Every optimizer updates with the same bits however the network is cut and run, with a tied and a
// frozen parameter among them, and matrices of more than one block of a device's sums.
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/passes/freeze.h"
#include "network/zoo/gpt.h"
#include "plan/job/optimizer_kinds.h"
#include "plan/optimizers/adafactor.h"
#include "plan/optimizers/adamw.h"
#include "plan/optimizers/lamb.h"
#include "plan/optimizers/rmsprop.h"
#include "plan/optimizers/sgd.h"
#include "tests/transparency/every_pipeline.h"

namespace stagecoach {
namespace {

Network TiedAndPartlyFrozen() {
  auto network = ExpandNetwork(GptSpec{.layers = 2,
                                       .width = 32,
                                       .heads = 2,
                                       .context = 3,
                                       .vocabulary = 600,
                                       .tied_embeddings = true},
                               Precision::kFloat32);
  CHECK_OK(network.status());
  auto frozen = Freeze(*std::move(network), {"model/0003/*.bias"}, "training.freeze");
  CHECK_OK(frozen.status());
  return *std::move(frozen);
}

std::map<std::string, OptimizerSpec> UpdatesOfEveryKind() {
  return {{"adafactor", AdafactorSpec{}},
          {"adafactor_scaled",
           AdafactorSpec{.beta1 = 0.9, .relative_step = true, .scale_by_parameter = true}},
          {"adamw", AdamWSpec{}},
          {"lamb", LambSpec{}},
          {"lamb_all", LambSpec{.adapt_all = true}},
          {"rmsprop", RmsPropSpec{.weight_decay = 0.01}},
          {"rmsprop_pytorch", RmsPropSpec{.form = RmsPropSpec::Form::kPyTorch}},
          {"sgd", SgdSpec{.momentum = 0.9}},
          {"sgd_nesterov", SgdSpec{.momentum = 0.9, .nesterov = true}}};
}

TEST(EveryOptimizer, IsInTheseTests) {
  for (const OptimizerKind* kind : OptimizerKinds().all()) {
    bool listed = false;
    for (const auto& [name, spec] : UpdatesOfEveryKind()) listed |= spec.kind == kind->name();
    EXPECT_TRUE(listed) << kind->name();
  }
}

class EveryOptimizerOf : public testing::TestWithParam<std::string> {};

TEST_P(EveryOptimizerOf, HasTheSameBitsInEveryPipeline) {
  ExpectTheSameBitsInEveryPipeline(TiedAndPartlyFrozen(), nullptr,
                                   UpdatesOfEveryKind().at(GetParam()));
}

// The average has them too, and what is trained has those of a job without one.
TEST(AverageOfWeights, HasTheSameBitsInEveryPipelineAndChangesNothing) {
  const Network network = TiedAndPartlyFrozen();
  HarnessOptions options;
  const HarnessResult plain = TrainThreeSteps(options, network);
  options.average = {.decay = 0.9, .warmup = true};
  const HarnessResult truth = TrainThreeSteps(options, network);
  HarnessResult without = truth;
  EXPECT_GT(
      std::erase_if(without.state,
                    [](const auto& named) { return named.first.starts_with("opt/average/"); }),
      0u);
  EXPECT_TRUE(without == plain);
  EXPECT_FALSE(truth.state.contains("opt/average/0003/attention.qkv.bias"));
  EXPECT_TRUE(truth.state.contains("model/0003/attention.qkv.bias")) << "frozen, not averaged";
  for (int stages = 2; stages <= 4; ++stages) {
    options.stages = stages;
    EXPECT_TRUE(TrainThreeSteps(options, network) == truth) << "K=" << stages;
  }
}

std::vector<std::string> NamesOfUpdates() {
  std::vector<std::string> names;
  for (const auto& [name, spec] : UpdatesOfEveryKind()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Optimizers, EveryOptimizerOf, testing::ValuesIn(NamesOfUpdates()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace stagecoach
