// Protects the forecast's arithmetic: counts of known networks, and memory by hand-worked programs.
#include "plan/costs/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "network/lists/cost.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "plan/optimizers/adamw.h"
#include "plan/optimizers/sgd.h"

namespace stagecoach {
namespace {

constexpr int64_t kContext = 256, kWidth = 384, kHeads = 6, kVocabulary = 512, kBlocks = 3;

Network Gpt(double dropout = 0, Precision precision = Precision::kFloat32) {
  const auto network = ExpandNetwork(GptSpec{.layers = kBlocks,
                                             .width = kWidth,
                                             .heads = kHeads,
                                             .context = kContext,
                                             .vocabulary = kVocabulary,
                                             .dropout = dropout},
                                     precision);
  EXPECT_TRUE(network.ok()) << network.status();
  return *network;
}

// Of one sequence: what layer i keeps from forward to backward.
int64_t StashOf(const Network& network, size_t i) {
  return StashBytes(*network.layers[i].lists, ComputeDType(network.precision));
}

TEST(ModelCosts, CountsTheParametersOfGpt2) {
  const auto network = ExpandNetwork(
      GptSpec{.layers = 12, .width = 768, .heads = 12, .context = 1024, .vocabulary = 50257});
  int64_t parameters = 0;
  for (const LayerCost& cost : ModelCosts(*network)) parameters += cost.parameters;
  EXPECT_EQ(parameters, 124'439'808 + 50257 * 768) << "GPT-2 small ties its head, we do not";
}

TEST(ModelCosts, CountsModelFlopsAsUsual) {
  // 6 per weight of a matrix product, and causal attention: 2 products of (c + 1) / 2 columns.
  const double weights = kBlocks * 12.0 * kWidth * kWidth + 1.0 * kWidth * kVocabulary;
  const double attention = kBlocks * 3.0 * 4 * kWidth * (kContext + 1) / 2;
  EXPECT_DOUBLE_EQ(ModelFlopsPerToken(Gpt()), 6 * weights + attention);
}

TEST(ModelCosts, ProductsDominateAndBackwardTakesAboutTwice) {
  int64_t forward = 0, backward = 0;
  for (const LayerCost& cost : ModelCosts(Gpt())) {
    forward += cost.forward_flops;
    backward += cost.backward_flops;
    EXPECT_GT(cost.forward_flops, 0) << "no layer is free";
  }
  const double products = ModelFlopsPerToken(Gpt()) / 3 * kContext;
  EXPECT_GT(static_cast<double>(forward), products);
  EXPECT_LT(static_cast<double>(forward), 1.05 * products);
  EXPECT_NEAR(static_cast<double>(backward) / static_cast<double>(forward), 2.0, 0.1);
}

TEST(ModelCosts, StashIsTheTableOfTheArchitectureDocument) {
  const Network network = Gpt();
  const std::vector<int64_t> cuts = CutBytes(network);
  const int64_t n = kContext, d = kWidth, h = 4 * kWidth;
  EXPECT_EQ(StashOf(network, 0), 4 * n);
  EXPECT_EQ(StashOf(network, 1), 4 * n * (d + 2) + 4 * n * (5 * d + kHeads));
  EXPECT_EQ(StashOf(network, 2), 4 * n * (d + 2) + 4 * n * (d + 2 * h));
  EXPECT_EQ(StashOf(network, 7), 4 * n * (d + 2)) << "layer norm";
  EXPECT_EQ(StashOf(network, 8), 4 * n * d) << "linear";
  EXPECT_EQ(cuts[8], 4 * n * kVocabulary);
  EXPECT_EQ(cuts[3], 4 * n * d);
}

TEST(ModelCosts, Bfloat16HalvesActivationsButNotStatisticsAndIds) {
  const Network network = Gpt(0, Precision::kBfloat16), wide = Gpt();
  const Network single = Gpt(0, Precision::kTensorFloat32);
  const std::vector<int64_t> cuts = CutBytes(network);
  const std::vector<LayerCost> costs = ModelCosts(network), single_costs = ModelCosts(single);
  const int64_t n = kContext, d = kWidth, h = 4 * kWidth;
  EXPECT_EQ(StashOf(network, 0), 4 * n);
  EXPECT_EQ(StashOf(network, 1), 2 * n * 6 * d + 4 * n * (2 + kHeads));
  EXPECT_EQ(StashOf(network, 2), 2 * n * (2 * d + 2 * h) + 4 * n * 2);
  EXPECT_EQ(StashOf(network, 8), 2 * n * d) << "linear";
  EXPECT_EQ(cuts[8], 2 * n * kVocabulary);
  EXPECT_EQ(cuts[3], 2 * n * d);
  for (size_t i = 0; i < costs.size(); ++i) {
    EXPECT_EQ(StashOf(single, i), StashOf(wide, i));
    EXPECT_EQ(costs[i].forward_flops, single_costs[i].forward_flops);
  }
}

TEST(ModelCosts, DropoutKeepsNothing) {
  const Network dropping = Gpt(0.1), plain = Gpt();
  const std::vector<LayerCost> with = ModelCosts(dropping), without = ModelCosts(plain);
  for (size_t i = 0; i < with.size(); ++i) {
    EXPECT_EQ(StashOf(dropping, i), StashOf(plain, i));
    EXPECT_GE(with[i].forward_flops, without[i].forward_flops);
  }
}

StageMemory Forecast(const ScheduleOptions& options, int stage, int first, int last,
                     int64_t batch_size, const OptimizerSpec& optimizer = AdamWSpec{}) {
  return ForecastStageMemory(Gpt(), MakeSchedule(options).programs, stage,
                             {.cells = {{first, last}},
                              .batch_size = batch_size,
                              .micro_batches = options.micro_batches,
                              .optimizer = optimizer});
}

TEST(StageMemory, CountsWeightsGradientsAndOptimizerSlots) {
  const ScheduleOptions one{};
  const int64_t weights = 4 * (kWidth * kVocabulary + 2 * kWidth);
  for (const auto& [optimizer, slots] : std::vector<std::pair<OptimizerSpec, int64_t>>{
           {AdamWSpec{}, 2}, {SgdSpec{.momentum = 0.9}, 1}, {SgdSpec{}, 0}}) {
    const StageMemory memory = Forecast(one, 0, 7, 9, 1, optimizer);
    EXPECT_EQ(memory.parameters, weights);
    EXPECT_EQ(memory.gradients, weights);
    EXPECT_EQ(memory.optimizer, slots * weights);
    EXPECT_EQ(memory.total(),
              memory.parameters + memory.gradients + memory.optimizer + memory.activations);
  }
}

TEST(StageMemory, InBfloat16WeightsHaveACopyOfTwoBytesAndTheRestOfTheirKindStays) {
  const int64_t elements = kWidth * kVocabulary + 2 * kWidth;
  const StageMemory memory =
      ForecastStageMemory(Gpt(0, Precision::kBfloat16), MakeSchedule({}).programs, 0,
                          {.cells = {{7, 9}}, .batch_size = 1, .micro_batches = 1});
  EXPECT_EQ(memory.parameters, 6 * elements);
  EXPECT_EQ(memory.gradients, 4 * elements);
  EXPECT_EQ(memory.optimizer, 2 * 4 * elements);
  EXPECT_LT(memory.activations, Forecast({}, 0, 7, 9, 1).activations);
}

TEST(StageMemory, OfALastStageThatKeepsEverything) {
  // Layer norm and head, M = 2: both stashes and logits wait for the backwards; the first backward
  // finds its targets gone and the gradient of its logits in their place.
  const Network network = Gpt();
  const int64_t stash = StashOf(network, 7) + StashOf(network, 8);
  const int64_t logits = CutBytes(network)[8], targets = 4 * kContext;
  const StageMemory memory =
      Forecast({.rematerialization = Rematerialization::kNever, .stages = 2, .micro_batches = 2}, 1,
               7, 9, 6);
  EXPECT_EQ(memory.activations, 3 * (2 * (stash + logits) + targets));
}

TEST(StageMemory, OfAMiddleStageThatRecomputes) {
  // At the first backward: boundary inputs of the others, its stash and gradient, scratch of the
  // last layer; the gradients of the next two wait in the link.
  const Network network = Gpt();
  const int64_t boundary = 4 * kContext * kWidth;
  const StageMemory memory = Forecast({.stages = 3, .micro_batches = 4}, 1, 1, 3, 4);
  const int64_t stash = StashOf(network, 1) + StashOf(network, 2);
  const LayerLists& lists = *network.layers[2].lists;
  EXPECT_EQ(memory.activations, (3 + 2) * boundary + stash + boundary +
                                    PeakOfList(lists, lists.backward, DType::kF32, {}));
}

TEST(StageMemory, OfOneForwardOneBackwardDependsOnTheStageNotOnTheMicroBatches) {
  const auto activations = [](int stage, int micro_batches) {
    return Forecast({.kind = "one_forward_one_backward",
                     .rematerialization = Rematerialization::kNever,
                     .stages = 3,
                     .micro_batches = micro_batches},
                    stage, 1 + 2 * stage, 3 + 2 * stage, micro_batches)
        .activations;
  };
  EXPECT_EQ(activations(0, 8), activations(0, 32));
  EXPECT_EQ(activations(1, 8), activations(1, 32));
  EXPECT_GT(activations(0, 8), activations(1, 8)) << "the first stage holds most";
}

// A layer norm keeps little, and in training three micro-batches at most are under way: forwards
// alone fill links.
TEST(StageMemory, IsThatOfAnEvaluationWhereItTakesMore) {
  ScheduleOptions options{.kind = "one_forward_one_backward", .stages = 3, .micro_batches = 16};
  const auto training = MakeSchedule(options).programs;
  options.forward_only = true;
  const auto evaluation = MakeSchedule(options).programs;
  StageMemoryQuery query{.cells = {{7, 8}}, .batch_size = 16, .micro_batches = 16};
  for (const int capacity : {1, 2, 16}) {
    query.link_capacity = capacity;
    query.evaluation = {};
    const int64_t step = ForecastStageMemory(Gpt(), training, 1, query).activations;
    query.evaluation = evaluation;
    const int64_t alone = ForecastStageMemory(Gpt(), {}, 1, query).activations;
    const StageMemory both = ForecastStageMemory(Gpt(), training, 1, query);
    EXPECT_EQ(both.activations, std::max(step, alone)) << capacity;
    EXPECT_EQ(both.fullest.evaluation, alone > step) << capacity;
    if (capacity == 16) {
      EXPECT_GT(alone, step);
    }
  }
}

TEST(StageMemory, GrowsFromAlwaysToNever) {
  const auto activations = [](Rematerialization mode) {
    return Forecast({.rematerialization = mode, .stages = 2, .micro_batches = 8}, 0, 0, 5, 16)
        .activations;
  };
  EXPECT_LE(activations(Rematerialization::kAlways), activations(Rematerialization::kExceptFirst));
  EXPECT_LT(4 * activations(Rematerialization::kExceptFirst),
            activations(Rematerialization::kNever));
}

TEST(StageMemory, OfAbsurdSizesIsTooMuchNotNegative) {
  const StageMemory memory =
      Forecast({.rematerialization = Rematerialization::kNever, .stages = 1, .micro_batches = 4}, 0,
               0, 9, int64_t{1} << 50);
  EXPECT_EQ(memory.activations, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(memory.total(), std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace stagecoach
