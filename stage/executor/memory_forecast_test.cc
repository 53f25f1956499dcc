// The planner's forecast against what a stage's allocator saw, in every precision and on cards.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "network/layers/batch_norm.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/relu.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "network/zoo/llama.h"
#include "network/zoo/mlp.h"
#include "network/zoo/resnet.h"
#include "network/zoo/sequence.h"
#include "plan/card_memory.h"
#include "plan/cost_model.h"
#include "plan/optimizers/adamw.h"
#include "plan/schedule_kinds.h"
#include "stage/testing/pipeline_harness.h"
#include "stage/testing/staged_backend.h"

namespace stagecoach {
namespace {

// Widths whose tensors are whole 64 bytes in either type, so that nothing is rounded up.
constexpr GptSpec kModel{
    .layers = 4, .width = 64, .heads = 4, .context = 32, .vocabulary = 128, .dropout = 0.1};
// And whole 512 bytes.
constexpr GptSpec kCardModel{.layers = 2, .width = 32, .heads = 2, .context = 64, .vocabulary = 64};
constexpr int64_t kBatch = 8, kMicroBatches = 4;

int64_t Activations(Backend& backend) {
  return backend.allocator().Use().peak[static_cast<int>(MemoryKind::kActivations)];
}

// With stages in one process a value that was sent is still the sender's; so `within` is for one stage.
void ExpectForecast(const ModelSpec& spec, Precision precision, int stages, Rematerialization mode,
                    std::optional<double> within = std::nullopt) {
  const std::string what = absl::StrCat(spec.kind, ", ", PrecisionName(precision), ", K=", stages,
                                        ", ", RematerializationName(mode));
  HarnessOptions options{.stages = stages,
                         .batch_size = kBatch,
                         .micro_batches = kMicroBatches,
                         .rematerialization = mode,
                         .precision = precision};
  options.other_model = spec;
  PipelineHarness pipeline(options);
  const absl::Status trained = pipeline.TrainStep();
  ASSERT_TRUE(trained.ok()) << what << ": " << trained;
  const Network model = *ExpandModel(spec, precision);
  const int layers = static_cast<int>(model.layers.size());
  const Partition partition = *UniformPartition(layers, stages);
  for (int k = 0; k < stages; ++k) {
    const StageMemory forecast = ForecastStageMemory(model, *pipeline.Work(k, true).program,
                                                     {.first_layer = partition.first(k),
                                                      .last_layer = partition.last(k, layers),
                                                      .batch_size = kBatch,
                                                      .micro_batches = kMicroBatches,
                                                      .optimizer = AdamWSpec{}});
    const auto peak = pipeline.backend(k).allocator().Use().peak;
    const auto of = [&](MemoryKind kind) { return peak[static_cast<int>(kind)]; };
    EXPECT_EQ(of(MemoryKind::kParameters), forecast.parameters) << what << ", stage " << k;
    EXPECT_EQ(of(MemoryKind::kGradients), forecast.gradients) << what << ", stage " << k;
    EXPECT_EQ(of(MemoryKind::kOptimizer), forecast.optimizer) << what << ", stage " << k;
    const double ratio = static_cast<double>(of(MemoryKind::kActivations)) /
                         static_cast<double>(forecast.activations);
    EXPECT_GT(ratio, within ? 1 - *within : 0.75) << what << ", stage " << k;
    EXPECT_LT(ratio, within ? 1 + *within : 1.10) << what << ", stage " << k;
  }
}

TEST(MemoryForecast, HoldsInEveryPrecision) {
  for (const Precision precision :
       {Precision::kFloat32, Precision::kTensorFloat32, Precision::kBfloat16}) {
    for (const int stages : {1, 3}) {
      ExpectForecast(kModel, precision, stages, Rematerialization::kAlways);
      ExpectForecast(kModel, precision, stages, Rematerialization::kNever);
    }
  }
}

TEST(MemoryForecast, HoldsForTheNetworksOfTheZoo) {
  const LlamaSpec llama{.layers = 3,
                        .width = 64,
                        .heads = 4,
                        .key_heads = 2,
                        .hidden = 96,
                        .context = 32,
                        .vocabulary = 128};
  const MlpNetworkSpec mlp{.image = {16, 16, 1}, .hidden = 128, .layers = 4, .classes = 32};
  const ResnetSpec resnet{.image = {8, 8, 8}, .classes = 64, .depth = 8, .width = 32};
  for (const ModelSpec& spec : std::vector<ModelSpec>{llama, mlp, resnet}) {
    for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
      ExpectForecast(spec, precision, 1, Rematerialization::kAlways, 0.03);
      ExpectForecast(spec, precision, 1, Rematerialization::kNever, 0.03);
    }
  }
}

// Statistics are there once for all samples of a micro-batch, beside values of one place a sample: not negligible.
// So are running moments and what gathers for them.
TEST(MemoryForecast, HoldsWithBatchNorms) {
  const SequenceSpec list{
      .width = 128,
      .context = 1,
      .vocabulary = 128,
      .layers = {EmbeddingSpec{.position = false}, BatchNormSpec{}, ReluSpec{},
                 LinearSpec{.out = 128}, BatchNormSpec{}, ReluSpec{}, LinearSpec{.out = 128}}};
  const Network model = *ExpandModel(list);
  for (const auto mode : {Rematerialization::kAlways, Rematerialization::kNever}) {
    HarnessOptions options{.batch_size = 16, .micro_batches = 4, .rematerialization = mode};
    options.other_model = list;
    PipelineHarness pipeline(options);
    ASSERT_TRUE(pipeline.TrainStep().ok());
    const StageMemory forecast =
        ForecastStageMemory(model, *pipeline.Work(0, true).program,
                            {.first_layer = 0,
                             .last_layer = static_cast<int>(model.layers.size()),
                             .batch_size = 16,
                             .micro_batches = 4,
                             .optimizer = AdamWSpec{}});
    const auto peak = pipeline.backend(0).allocator().Use().peak;
    EXPECT_EQ(peak[static_cast<int>(MemoryKind::kParameters)], forecast.parameters);
    EXPECT_EQ(peak[static_cast<int>(MemoryKind::kGradients)], forecast.gradients);
    EXPECT_EQ(peak[static_cast<int>(MemoryKind::kOptimizer)], forecast.optimizer);
    const double ratio = static_cast<double>(Activations(pipeline.backend(0))) /
                         static_cast<double>(forecast.activations);
    EXPECT_NEAR(ratio, 1.0, 0.03) << RematerializationName(mode);
  }
}

// What a step on cards takes of its forecast on the fullest stage, workspaces left out. Copies run
// late and in an order drawn from the seed.
double FullestOnCards(const std::string& schedule, Rematerialization mode, int stages,
                      uint64_t seed) {
  int made = 0;
  HarnessOptions options{.stages = stages,
                         .model = kCardModel,
                         .batch_size = kBatch,
                         .micro_batches = kMicroBatches,
                         .schedule = schedule,
                         .rematerialization = mode,
                         .order_seed = seed,
                         .patience = 1000};
  options.make_backend = [&] {
    return std::make_unique<StagedBackend>(100 * seed + static_cast<uint64_t>(++made));
  };
  PipelineHarness pipeline(options);
  const absl::Status trained = pipeline.TrainStep();
  EXPECT_TRUE(trained.ok()) << trained;
  const Network model = *ExpandModel(kCardModel);
  const int layers = static_cast<int>(model.layers.size());
  const Partition partition = *UniformPartition(layers, stages);
  double fullest = 0;
  for (int k = 0; k < stages; ++k) {
    const StageMemory forecast = ForecastStageMemory(model, *pipeline.Work(k, true).program,
                                                     {.first_layer = partition.first(k),
                                                      .last_layer = partition.last(k, layers),
                                                      .batch_size = kBatch,
                                                      .micro_batches = kMicroBatches,
                                                      .optimizer = AdamWSpec{},
                                                      .card = CardProfile{}});
    const double ratio = static_cast<double>(Activations(pipeline.backend(k))) /
                         static_cast<double>(forecast.activations - kCardWorkspaceBytes);
    EXPECT_LE(ratio, 1.0) << "stage " << k << " of " << stages << ", seed " << seed;
    EXPECT_GT(ratio, 0.6) << "stage " << k << " of " << stages << ", seed " << seed;
    fullest = std::max(fullest, ratio);
  }
  return fullest;
}

TEST(MemoryForecast, IsReachedButNotExceededOnCards) {
  for (const int stages : {1, 2, 3}) {
    double fullest = 0;
    for (const std::string& schedule : ScheduleNames()) {
      for (const auto mode : {Rematerialization::kAlways, Rematerialization::kNever}) {
        for (uint64_t seed = 1; seed <= 3; ++seed) {
          fullest = std::max(fullest, FullestOnCards(schedule, mode, stages, seed));
        }
      }
    }
    EXPECT_GT(fullest, 0.95) << stages << " stages: what is counted is taken where copies are slow";
  }
}

}  // namespace
}  // namespace stagecoach
