// A network with batch norms goes on with its running moments, and with the averages of these, from
// a checkpoint of another number of stages. That it has the same ones however it is cut and run is
// in zoo_test.cc.
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/testing/fault_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/zoo/sequence.h"
#include "stage/testing/harness_checkpoint.h"
#include "stage/testing/pipeline_harness.h"
#include "tests/transparency/every_pipeline.h"

namespace stagecoach {
namespace {

// M does not divide N: micro-batches of 2, 2, 1.
HarnessOptions Normed(int stages, const std::function<std::unique_ptr<Backend>()>& make) {
  const LayerSpec block = ResidualSpec{
      {BatchNormSpec{.momentum = 0.3}, LinearSpec{.out = 41}, ReluSpec{}, LinearSpec{.out = 36}}};
  HarnessOptions options{
      .stages = stages, .batch_size = 5, .micro_batches = 3, .evaluation_sequences = 5};
  options.make_backend = make;
  options.average = {.decay = 0.6};
  options.spec = SequenceSpec{.width = 36,
                              .context = 11,
                              .vocabulary = 17,
                              .layers = {EmbeddingSpec{}, block, BatchNormSpec{}, ReluSpec{}, block,
                                         LinearSpec{.out = 17}}};
  return options;
}

HarnessResult TrainOrDie(const HarnessOptions& options, int steps) {
  auto result = PipelineHarness(options).Train(steps);
  CHECK_OK(result.status());
  return *std::move(result);
}

void ExpectToGoOn(const PipelineDevice& device) {
  const HarnessResult undisturbed = TrainOrDie(Normed(1, device.variants.front()), 4);
  EXPECT_NE(undisturbed.state.at("model/0002/running_mean"), std::string(4 * 36, '\0'));
  for (const char* name : {"running_mean", "running_variance"}) {
    const std::string of = std::string("/0002/") + name;
    EXPECT_NE(undisturbed.state.at("opt/average" + of), undisturbed.state.at("model" + of)) << of;
  }
  FaultFileSystem file_system;
  PipelineHarness three(Normed(3, device.variants.front()));
  ASSERT_TRUE(three.Train(2).ok());
  WriteCheckpoint(file_system, "/job/step-000000000002", 2, three);
  const auto evaluated = three.Evaluate(0);
  for (const int stages : {1, 2, 4}) {
    HarnessOptions options = Normed(stages, device.variants.back());
    PipelineHarness resumed(options);
    LoadCheckpoint(file_system, "/job/step-000000000002", 2, resumed);
    EXPECT_EQ(resumed.Evaluate(0)->loss_sum, evaluated->loss_sum);
    ASSERT_TRUE(resumed.Train(2).ok());
    EXPECT_TRUE(resumed.Result().state == undisturbed.state) << stages << " stages";
  }
}

TEST(BatchNorms, GoOnWithTheirAveragesOnAnotherNumberOfStages) {
  for (const PipelineDevice& device : PipelineDevices()) {
    SCOPED_TRACE(device.name);
    ExpectToGoOn(device);
  }
}

}  // namespace
}  // namespace stagecoach
