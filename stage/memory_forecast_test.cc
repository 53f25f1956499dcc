// The planner's forecast against what a stage's allocator saw, in every precision.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "plan/cost_model.h"
#include "stage/testing/pipeline_harness.h"

namespace stagecoach {
namespace {

// Widths whose tensors are whole 64 bytes in either type, so that nothing is rounded up.
constexpr GptSpec kModel{
    .layers = 4, .width = 64, .heads = 4, .context = 32, .vocabulary = 128, .dropout = 0.1};
constexpr int64_t kBatch = 8, kMicroBatches = 4;

void ExpectForecast(Precision precision, int stages, Rematerialization mode) {
  const std::string what =
      absl::StrCat(PrecisionName(precision), ", K=", stages, ", ", RematerializationName(mode));
  PipelineHarness pipeline({.stages = stages,
                            .model = kModel,
                            .batch_size = kBatch,
                            .micro_batches = kMicroBatches,
                            .rematerialization = mode,
                            .dropout = kModel.dropout,
                            .precision = precision});
  const absl::Status trained = pipeline.TrainStep();
  ASSERT_TRUE(trained.ok()) << what << ": " << trained;
  const ExpandedModel model = *ExpandModel(kModel, precision);
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
    EXPECT_GT(ratio, 0.75) << what << ", stage " << k;
    EXPECT_LT(ratio, 1.10) << what << ", stage " << k;
  }
}

TEST(MemoryForecast, HoldsInEveryPrecision) {
  for (const Precision precision :
       {Precision::kFloat32, Precision::kTensorFloat32, Precision::kBfloat16}) {
    for (const int stages : {1, 3}) {
      ExpectForecast(precision, stages, Rematerialization::kAlways);
      ExpectForecast(precision, stages, Rematerialization::kNever);
    }
  }
}

}  // namespace
}  // namespace stagecoach
