// Tied parameters: the same bits for every cut, schedule and mode; an owner's gradient is the sum
// over its users.
#include "network/passes/tied.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/residual.h"
#include "network/network_kinds.h"
#include "network/passes/freeze.h"
#include "network/zoo/sequence.h"
#include "plan/costs/cost_model.h"
#include "plan/optimizers/adamw.h"
#include "plan/optimizers/sgd.h"
#include "plan/schedules/schedule_kinds.h"
#include "stage/testing/pipeline_harness.h"
#include "stage/testing/staged_backend.h"

namespace stagecoach {
namespace {

// So wide that no array of bfloat16 is less than 64 bytes, to which memory is rounded up.
constexpr int64_t kWidth = 32;

// Layers: embedding [w, w], then five of [w, w], one of them within a residual. Two parameters are
// tied: the token embedding is used by layers 2 and 5, layer 1's by layers 3 and 4.
Network WithTied(Precision precision = Precision::kFloat32, bool tied = true) {
  const LayerSpec linear = LinearSpec{.out = kWidth, .bias = false};
  const SequenceSpec list{
      .width = kWidth,
      .context = 4,
      .vocabulary = kWidth,
      .layers = {EmbeddingSpec{}, linear, linear,
                 ResidualSpec{{LinearSpec{.out = kWidth}, ReluSpec{}, DropoutSpec{.rate = 0.2}}},
                 linear, linear}};
  Network network = *ExpandNetwork(list, precision);
  if (!tied) return network;
  const auto tie = [&network](const char* parameter, const char* owner) {
    CHECK_OK(TieParameter(parameter, owner, "tied", &network));
  };
  tie("model/0002/weight", "model/0000/token.weight");
  tie("model/0005/weight", "model/0000/token.weight");
  tie("model/0003/linear.weight", "model/0001/weight");
  tie("model/0004/weight", "model/0001/weight");
  return network;
}

HarnessOptions TiedOptions(const Network& network, int stages) {
  HarnessOptions options{.stages = stages, .batch_size = 5, .micro_batches = 3};
  options.precision = network.precision;
  options.network = network;
  options.clip_norm = 0.5;
  return options;
}

HarnessResult TrainTied(const HarnessOptions& options, int steps = 3) {
  auto result = PipelineHarness(options).Train(steps);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : HarnessResult{};
}

TEST(Tied, TrainWithTheSameBitsInEveryPipeline) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    const Network network = WithTied(precision);
    const HarnessResult truth = TrainTied(TiedOptions(network, 1));
    for (int stages = 1; stages <= 6; stages += kSanitized ? 2 : 1) {
      for (const std::string& schedule : SchedulesFor(network.layers.size(), stages)) {
        for (const auto mode : {Rematerialization::kAlways, Rematerialization::kExceptFirst,
                                Rematerialization::kNever}) {
          HarnessOptions options = TiedOptions(network, stages);
          options.schedule = schedule;
          options.rematerialization = mode;
          options.order_seed = static_cast<uint64_t>(stages);
          options.link_capacity = 1 + stages % 2;
          EXPECT_TRUE(TrainTied(options) == truth)
              << stages << " stages, " << schedule << ", " << RematerializationName(mode) << ", "
              << PrecisionName(precision);
        }
      }
    }
  }
}

TEST(Tied, TrainWithTheSameBitsOverCopiesToCards) {
  const Network network = WithTied();
  const HarnessResult truth = TrainTied(TiedOptions(network, 1));
  for (int stages = 1; stages <= 6; ++stages) {
    uint64_t made = 0;
    HarnessOptions options = TiedOptions(network, stages);
    options.patience = 1000;
    options.make_backend = [&made] { return std::make_unique<StagedBackend>(++made); };
    EXPECT_TRUE(TrainTied(options) == truth) << stages;
  }
}

TEST(Tied, HaveNoPlaceOfTheirOwnInACheckpoint) {
  const HarnessResult result = TrainTied(TiedOptions(WithTied(), 3));
  EXPECT_TRUE(result.state.contains("opt/m/0000/token.weight"));
  for (const char* user : {"0002/weight", "0005/weight", "0003/linear.weight", "0004/weight"}) {
    EXPECT_FALSE(result.state.contains(absl::StrCat("model/", user))) << user;
    EXPECT_FALSE(result.state.contains(absl::StrCat("opt/m/", user))) << user;
  }
  EXPECT_TRUE(result.state.contains("model/0003/linear.bias")) << "its neighbour is not tied";
}

// The same network with five parameters of their own that begin with two values: its gradients by
// parameter are what is summed. One step of SGD leaves `value - rate * gradient`.
TEST(Tied, AnOwnersGradientIsTheSumOverItsUsersLayerByLayer) {
  HarnessOptions tied = TiedOptions(WithTied(), 3);
  HarnessOptions apart = TiedOptions(WithTied(Precision::kFloat32, false), 1);
  tied.clip_norm = apart.clip_norm = 0;
  PipelineHarness one(apart), three(tied);
  const std::vector<std::pair<std::string, std::string>> uses = {
      {"model/0000/token.weight", "model/0002/weight"},
      {"model/0000/token.weight", "model/0005/weight"},
      {"model/0001/weight", "model/0003/linear.weight"},
      {"model/0001/weight", "model/0004/weight"}};
  std::map<std::string, Parameter*> parameters;
  for (Parameter* parameter : one.cell(0).parameters())
    parameters[parameter->spec.name] = parameter;
  for (const auto& [owner, user] : uses) {
    one.backend(0).CopyFromHost(parameters.at(owner)->value.span(), parameters.at(user)->value);
  }
  ASSERT_TRUE(one.RunPass(true, 0).ok() && three.RunPass(true, 0).ok());
  std::map<std::string, std::vector<float>> sums;
  for (const auto& [owner, user] : uses) {
    std::vector<float>& sum = sums[owner];
    const auto of = [&](const std::string& name) {
      const Tensor& gradient = parameters.at(name)->gradient;
      return std::vector<float>(gradient.data<float>(), gradient.data<float>() + kWidth * kWidth);
    };
    if (sum.empty()) sum = of(owner);
    const std::vector<float> share = of(user);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += share[i];
  }
  int compared = 0;
  for (int k = 0; k < 3; ++k) {
    for (Parameter* parameter : three.cell(k).parameters()) {
      const auto sum = sums.find(parameter->spec.name);
      if (sum == sums.end()) continue;
      const float* gradient = parameter->gradient.data<float>();
      EXPECT_EQ(std::vector<float>(gradient, gradient + kWidth * kWidth), sum->second)
          << sum->first;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 2);
}

TEST(Tied, AnEvaluationSeesTheValuesOfTheLastUpdate) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    std::vector<double> losses;
    for (int stages = 1; stages <= 6; ++stages) {
      HarnessOptions options = TiedOptions(WithTied(precision), stages);
      options.evaluation_sequences = 5;
      PipelineHarness pipeline(options);
      for (int step = 0; step < 2; ++step) {
        ASSERT_TRUE(pipeline.TrainStep().ok());
        losses.push_back(pipeline.Evaluate(0)->loss_sum);
      }
    }
    EXPECT_NE(losses[0], losses[1]);
    for (size_t i = 2; i < losses.size(); ++i) EXPECT_EQ(losses[i], losses[i % 2]) << i / 2 + 1;
  }
}

TEST(Tied, FrozenOnesStay) {
  const Network network = *Freeze(WithTied(), {"model/0000/token.weight"}, "training.freeze");
  const HarnessResult before = PipelineHarness(TiedOptions(network, 1)).Result();
  const HarnessResult truth = TrainTied(TiedOptions(network, 1));
  EXPECT_EQ(truth.state.at("model/0000/token.weight"), before.state.at("model/0000/token.weight"));
  EXPECT_NE(truth.state.at("model/0001/weight"), before.state.at("model/0001/weight"));
  for (int stages = 2; stages <= 6; ++stages) {
    EXPECT_TRUE(TrainTied(TiedOptions(network, stages)) == truth) << stages;
  }
}

TEST(Tied, TakeTheMemoryThatIsForecast) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    const Network network = WithTied(precision);
    for (int stages = 1; stages <= 6; ++stages) {
      PipelineHarness pipeline(TiedOptions(network, stages));
      ASSERT_TRUE(pipeline.TrainStep().ok());
      const Partition partition = *UniformPartition(6, stages);
      for (int k = 0; k < stages; ++k) {
        const StageMemory forecast =
            ForecastStageMemory(network, pipeline.programs(true), k,
                                {.cells = {{partition.first(k), partition.last(k, 6)}},
                                 .batch_size = 5,
                                 .micro_batches = 3,
                                 .optimizer = AdamWSpec{}});
        const auto use = pipeline.backend(k).allocator().Use();
        const auto of = [&](MemoryKind kind) { return use.peak[static_cast<int>(kind)]; };
        const std::string where = absl::StrCat(k, " of ", stages);
        EXPECT_EQ(of(MemoryKind::kParameters), forecast.parameters) << where;
        EXPECT_EQ(of(MemoryKind::kGradients), forecast.gradients) << where;
        EXPECT_EQ(of(MemoryKind::kOptimizer), forecast.optimizer) << where;
      }
    }
  }
}

}  // namespace
}  // namespace stagecoach
