// Frozen parameters: the same bits for every cut, schedule and mode, also where whole stages train
// nothing; what is frozen stays, and what is trained has the gradients that it always had.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/name_patterns.h"
#include "base/sanitized.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/network_kinds.h"
#include "network/passes/freeze.h"
#include "network/zoo/sequence.h"
#include "plan/costs/cost_model.h"
#include "plan/optimizers/adamw.h"
#include "plan/schedules/schedule_kinds.h"
#include "stage/testing/pipeline_harness.h"
#include "stage/testing/skip_network.h"

namespace stagecoach {
namespace {

using Patterns = std::vector<std::string>;

// Layers: embedding, batch norm, residual, batch norm, residual, linear.
Network WithFrozen(const Patterns& patterns, Precision precision = Precision::kFloat32) {
  const LayerSpec block = ResidualSpec{
      {LinearSpec{.out = 16}, ReluSpec{}, LinearSpec{.out = 16}, DropoutSpec{.rate = 0.2}}};
  const SequenceSpec list{.width = 16,
                          .context = 4,
                          .vocabulary = 16,
                          .layers = {EmbeddingSpec{}, BatchNormSpec{}, block, BatchNormSpec{},
                                     block, LinearSpec{.out = 16}}};
  auto network = Freeze(*ExpandNetwork(list, precision), patterns, "training.freeze");
  CHECK_OK(network.status());
  return *std::move(network);
}

HarnessOptions FrozenOptions(const Network& network, int stages) {
  HarnessOptions options{.stages = stages, .batch_size = 5, .micro_batches = 3};
  options.precision = network.precision;
  options.network = network;
  return options;
}

HarnessResult TrainFrozen(const HarnessOptions& options, int steps = 3) {
  auto result = PipelineHarness(options).Train(steps);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : HarnessResult{};
}

const std::vector<Patterns> kFrozen = {
    {"model/0000/*"},
    {"model/0000/*", "model/0001/*", "model/0002/*"},  // whole stages
    {"model/0000/*", "model/0002/*", "*.bias"},
    {"model/0000/*", "model/0001/*", "model/0002/*", "model/0003/*", "model/0004/*"}};

TEST(Frozen, TrainWithTheSameBitsInEveryPipeline) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    for (size_t i = 0; i < kFrozen.size(); ++i) {
      const Network network = WithFrozen(kFrozen[i], precision);
      const HarnessResult truth = TrainFrozen(FrozenOptions(network, 1));
      for (int stages = 1; stages <= 6; stages += kSanitized ? 2 : 1) {
        for (const std::string& schedule : SchedulesFor(network.layers.size(), stages)) {
          for (const auto mode : {Rematerialization::kAlways, Rematerialization::kExceptFirst,
                                  Rematerialization::kNever}) {
            HarnessOptions options = FrozenOptions(network, stages);
            options.schedule = schedule;
            options.rematerialization = mode;
            options.order_seed = static_cast<uint64_t>(stages);
            options.link_capacity = 1 + stages % 2;
            EXPECT_TRUE(TrainFrozen(options) == truth)
                << stages << " stages, " << schedule << ", " << RematerializationName(mode) << ", "
                << PrecisionName(precision) << ", frozen " << i;
          }
        }
      }
    }
  }
}

TEST(Frozen, StayAsTheyWereAndTheOthersHaveTheGradientsThatTheyAlwaysHad) {
  const HarnessResult before = PipelineHarness(FrozenOptions(WithFrozen({}), 1)).Result();
  const HarnessResult all = TrainFrozen(FrozenOptions(WithFrozen({}), 1), 1);
  const Patterns patterns = {"model/0000/*", "model/0002/linear.*", "*2.bias"};
  const HarnessResult some = TrainFrozen(FrozenOptions(WithFrozen(patterns), 2), 1);
  EXPECT_EQ(some.losses, all.losses);
  int frozen = 0, moments = 0;
  for (const auto& [name, bytes] : all.state) {
    const bool slot = name.starts_with("opt/");
    const std::string parameter = slot ? "model/" + name.substr(6) : name;
    const bool stays = MatchesPattern(patterns[0], parameter) ||
                       MatchesPattern(patterns[1], parameter) ||
                       MatchesPattern(patterns[2], parameter);
    if (!stays) {
      ASSERT_TRUE(some.state.contains(name)) << name;
      EXPECT_EQ(some.state.at(name), bytes) << name;
      moments += name.ends_with("running_mean");
    } else if (slot) {
      EXPECT_FALSE(some.state.contains(name)) << name;
    } else {
      ++frozen;
      EXPECT_EQ(some.state.at(name), before.state.at(name)) << name;
      EXPECT_NE(bytes, before.state.at(name)) << name;
    }
  }
  EXPECT_EQ(frozen, 2 + 2 + 2);
  EXPECT_EQ(moments, 2);
}

TEST(Frozen, BatchNormsStillMoveTheirAveragesOncePerMicroBatch) {
  const HarnessResult all = TrainFrozen(FrozenOptions(WithFrozen({}), 1), 1);
  for (const int stages : {1, 3, 6}) {
    HarnessOptions options = FrozenOptions(WithFrozen(kFrozen[1]), stages);
    options.rematerialization = Rematerialization::kAlways;
    const HarnessResult frozen = TrainFrozen(options, 1);
    EXPECT_EQ(frozen.state.at("model/0001/running_variance"),
              all.state.at("model/0001/running_variance"));
  }
}

TEST(Frozen, SkipsAndInputsOfLaterStagesWork) {
  for (int stages = 1; stages <= 6; ++stages) {
    const Network network =
        *Freeze(MakeSkipNetwork(false), {"model/0000/*", "model/0001/*"}, "training.freeze");
    HarnessOptions options = FrozenOptions(network, stages);
    EXPECT_TRUE(TrainFrozen(options) == TrainFrozen(FrozenOptions(network, 1))) << stages;
  }
}

TEST(Frozen, TakeTheMemoryThatIsForecast) {
  const Network network = WithFrozen(kFrozen[1]);
  for (const int stages : {1, 2, 3}) {
    HarnessOptions options = FrozenOptions(network, stages);
    options.batch_size = 64;
    options.micro_batches = 4;
    options.rematerialization = Rematerialization::kNever;
    PipelineHarness pipeline(options);
    ASSERT_TRUE(pipeline.TrainStep().ok());
    const Partition partition = *UniformPartition(6, stages);
    for (int k = 0; k < stages; ++k) {
      const StageMemory forecast =
          ForecastStageMemory(network, pipeline.programs(true), k,
                              {.cells = {{partition.first(k), partition.last(k, 6)}},
                               .batch_size = 64,
                               .micro_batches = 4,
                               .optimizer = AdamWSpec{}});
      const auto peak = pipeline.backend(k).allocator().Use().peak;
      const auto of = [&](MemoryKind kind) { return peak[static_cast<int>(kind)]; };
      EXPECT_EQ(of(MemoryKind::kParameters), forecast.parameters) << k << " of " << stages;
      EXPECT_EQ(of(MemoryKind::kGradients), forecast.gradients) << k << " of " << stages;
      EXPECT_EQ(of(MemoryKind::kOptimizer), forecast.optimizer) << k << " of " << stages;
      if (stages > 1) continue;  // what was sent is still the sender's here
      const double ratio = static_cast<double>(of(MemoryKind::kActivations)) /
                           static_cast<double>(forecast.activations);
      EXPECT_NEAR(ratio, 1.0, 0.03);
    }
  }
}

}  // namespace
}  // namespace stagecoach
