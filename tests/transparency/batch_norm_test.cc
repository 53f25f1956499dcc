// A network with batch norms has the same weights, averages and losses however it is cut and run, and goes on with
// its averages from a checkpoint of another number of stages.
#include "network/layers/batch_norm.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "checkpoint/fault_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/relu.h"
#include "network/layers/residual.h"
#include "network/zoo/sequence.h"
#include "plan/schedule_kinds.h"
#include "stage/testing/harness_checkpoint.h"
#include "stage/testing/pipeline_harness.h"

namespace stagecoach {
namespace {

using MakeBackend = std::function<std::unique_ptr<Backend>()>;

struct NormDevice {
  std::string name;
  std::vector<MakeBackend> variants;  // all must give the same bits
  friend void PrintTo(const NormDevice& device, std::ostream* out) { *out << device.name; }
};

std::vector<NormDevice> NormDevices() {
  std::vector<NormDevice> devices = {{"reference", {[] { return MakeReferenceBackend({}); }}}};
#ifdef STAGECOACH_CPU_BACKEND
  devices.push_back({"cpu",
                     {[] { return MakeCpuBackend({.threads = 1}); },
                      [] { return MakeCpuBackend({.threads = 3}); }}});
#endif
  return devices;
}

// M does not divide N: micro-batches of 2, 2, 1.
HarnessOptions Normed(int stages, const MakeBackend& make, Precision precision) {
  const LayerSpec block = ResidualSpec{
      {BatchNormSpec{.momentum = 0.3}, LinearSpec{.out = 41}, ReluSpec{}, LinearSpec{.out = 36}}};
  HarnessOptions options{
      .stages = stages, .batch_size = 5, .micro_batches = 3, .evaluation_sequences = 5};
  options.precision = precision;
  options.make_backend = make;
  options.other_model = SequenceSpec{.width = 36,
                                     .context = 11,
                                     .vocabulary = 17,
                                     .layers = {EmbeddingSpec{}, block, BatchNormSpec{}, ReluSpec{},
                                                block, LinearSpec{.out = 17}}};
  return options;
}

constexpr Precision kPrecisions[] = {Precision::kFloat32, Precision::kBfloat16};

class BatchNorms : public testing::TestWithParam<NormDevice> {
 protected:
  static HarnessResult TrainOrDie(const HarnessOptions& options, int steps = 3) {
    auto result = PipelineHarness(options).Train(steps);
    CHECK_OK(result.status());
    return *std::move(result);
  }
};

TEST_P(BatchNorms, TrainWithTheSameBitsInEveryPipeline) {
  for (const Precision precision : kPrecisions) {
    const HarnessResult truth = TrainOrDie(Normed(1, GetParam().variants[0], precision));
    ASSERT_TRUE(truth.state.contains("model/0002/running_mean"));
    EXPECT_NE(truth.state.at("model/0002/running_mean"), std::string(4 * 36, '\0'));
    for (const MakeBackend& variant : GetParam().variants) {
      for (int stages = 1; stages <= 4; ++stages) {
        for (const std::string& schedule : ScheduleNames()) {
          for (const auto mode : {Rematerialization::kAlways, Rematerialization::kExceptFirst,
                                  Rematerialization::kNever}) {
            HarnessOptions options = Normed(stages, variant, precision);
            options.schedule = schedule;
            options.rematerialization = mode;
            options.order_seed = static_cast<uint64_t>(stages);
            EXPECT_TRUE(TrainOrDie(options) == truth)
                << "K=" << stages << ", " << schedule << ", " << RematerializationName(mode) << ", "
                << PrecisionName(precision);
          }
        }
      }
    }
  }
}

TEST_P(BatchNorms, GoOnWithTheirAveragesOnAnotherNumberOfStages) {
  const HarnessResult undisturbed =
      TrainOrDie(Normed(1, GetParam().variants[0], Precision::kFloat32), 4);
  FaultFileSystem file_system;
  PipelineHarness three(Normed(3, GetParam().variants[0], Precision::kFloat32));
  ASSERT_TRUE(three.Train(2).ok());
  WriteCheckpoint(file_system, "/job/step-000000000002", 2, three);
  const auto evaluated = three.Evaluate(0);
  for (const int stages : {1, 2, 4}) {
    HarnessOptions options = Normed(stages, GetParam().variants.back(), Precision::kFloat32);
    PipelineHarness resumed(options);
    LoadCheckpoint(file_system, "/job/step-000000000002", 2, resumed);
    EXPECT_EQ(resumed.Evaluate(0)->loss_sum, evaluated->loss_sum);
    ASSERT_TRUE(resumed.Train(2).ok());
    EXPECT_TRUE(resumed.Result().state == undisturbed.state) << stages << " stages";
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchNorms, testing::ValuesIn(NormDevices()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace stagecoach
