// Transparency: training has the same bits for every number of stages, schedule, rematerialization,
// number of threads and order of events, and after a checkpoint is loaded on another number of
// stages. Compared are the loss of every step, the gradient norm, all weights and all optimizer
// slots. Not promised: equal bits for another M or another batch size, so each pair (N, M) has its
// own truth. The pipelines run in one thread over in-process links; real processes are in
// tests/e2e.
#include <ostream>
#include <string>
#include <vector>

#include "base/sanitized.h"
#include "checkpoint/testing/fault_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/zoo/gpt.h"
#include "plan/schedules/schedule_kinds.h"
#include "stage/backends/cuda/make_cuda_backend.h"
#include "stage/testing/harness_checkpoint.h"
#include "stage/testing/pipeline_harness.h"

namespace stagecoach {
namespace {

struct Device {
  std::string name;
  GptSpec gpt;
  Precision precision = Precision::kFloat32;
  std::vector<std::function<std::unique_ptr<Backend>()>> variants;  // all must give the same bits
  // Asked before a test: OK if the device is there.
  std::function<absl::Status()> present = [] { return absl::OkStatus(); };
};
// For the names of tests in reports.
void PrintTo(const Device& device, std::ostream* out) { *out << device.name; }

Device Reference() {
  Device device{.name = "reference",
                .gpt = {.layers = 2, .width = 4, .heads = 2, .context = 3, .vocabulary = 7}};
  device.variants.push_back([] { return MakeReferenceBackend({}); });
  return device;
}

#ifdef STAGECOACH_CPU_BACKEND
// Large enough that two threads share the work, odd enough that tiles have remainders.
Device Cpu() {
  Device device{.name = "cpu",
                .gpt = {.layers = 2, .width = 36, .heads = 3, .context = 19, .vocabulary = 67}};
  device.variants.push_back([] { return MakeCpuBackend({.threads = 1}); });
  device.variants.push_back([] { return MakeCpuBackend({.threads = 2}); });
  return device;
}
#endif

// All stages on one card, each with a back end of its own.
Device Cuda() {
  Device device{.name = "cuda",
                .gpt = {.layers = 2, .width = 36, .heads = 3, .context = 19, .vocabulary = 67}};
  device.variants.push_back([]() -> std::unique_ptr<Backend> {
    auto backend = MakeCudaBackend({}, 0);
    CHECK_OK(backend.status());
    return *std::move(backend);
  });
  device.present = [] { return MakeCudaBackend({}, 0).status(); };
  return device;
}

Device InBfloat16(Device device) {
  device.name += "_bfloat16";
  device.precision = Precision::kBfloat16;
  return device;
}

std::vector<Device> Devices() {
  std::vector<Device> devices = {Reference()};
#ifdef STAGECOACH_CPU_BACKEND
  devices.push_back(Cpu());
#endif
  devices.push_back(Cuda());
  for (size_t i = 0, count = devices.size(); i < count; ++i) {
    devices.push_back(InBfloat16(devices[i]));
  }
  return devices;
}

struct Batch {
  int64_t batch_size, micro_batches;
};
// M = 1; M < K; N = M; M not dividing N (micro-batches of 2, 2, 1); M > K.
constexpr Batch kBatches[] = {{3, 1}, {4, 2}, {3, 3}, {5, 3}, {7, 5}};
constexpr int kSteps = 3;

std::string Describe(const HarnessOptions& options) {
  return absl::StrCat("K=", options.stages, " N=", options.batch_size, " M=", options.micro_batches,
                      " ", options.schedule, " ", RematerializationName(options.rematerialization),
                      " dropout=", options.dropout, " clip=", options.clip_norm, " order seed ",
                      options.order_seed);
}

// Names the first thing that differs, so that a failure says where to look.
std::string Difference(const HarnessResult& result, const HarnessResult& truth) {
  for (size_t step = 0; step < truth.losses.size(); ++step) {
    if (result.losses.at(step) != truth.losses[step]) {
      return absl::StrCat("loss of step ", step, ": ", result.losses[step], " and not ",
                          truth.losses[step]);
    }
    if (result.squared_norms.at(step) != truth.squared_norms[step]) {
      return absl::StrCat("gradient norm of step ", step);
    }
  }
  for (const auto& [name, bytes] : truth.state) {
    const auto found = result.state.find(name);
    if (found == result.state.end()) return absl::StrCat("no tensor ", name);
    if (found->second != bytes) return absl::StrCat("tensor ", name);
  }
  return result == truth ? "" : "a tensor too many";
}

class Transparency : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    const absl::Status present = GetParam().present();
    if (!present.ok()) GTEST_SKIP() << GetParam().name << ": " << present;
  }
  HarnessOptions Options(const Batch& batch, double dropout) const {
    return {.gpt = GetParam().gpt,
            .batch_size = batch.batch_size,
            .micro_batches = batch.micro_batches,
            .dropout = dropout,
            .precision = GetParam().precision,
            .make_backend = GetParam().variants.front()};
  }
  static HarnessResult MustTrain(const HarnessOptions& options, int steps = kSteps) {
    auto result = PipelineHarness(options).Train(steps);
    CHECK_OK(result.status());
    return *std::move(result);
  }
  static void ExpectSameBits(const HarnessOptions& options, const HarnessResult& truth) {
    auto result = PipelineHarness(options).Train(kSteps);
    ASSERT_TRUE(result.ok()) << Describe(options) << ": " << result.status();
    EXPECT_EQ(Difference(*result, truth), "") << Describe(options);
  }
};

TEST_P(Transparency, EveryPipelineHasTheBitsOfOneStage) {
  uint64_t order_seed = 0;
  for (const Batch& batch : kBatches) {
    for (double dropout : {0.0, 0.3}) {
      HarnessOptions options = Options(batch, dropout);
      options.rematerialization = Rematerialization::kNever;
      options.clip_norm = dropout > 0 ? 0.5 : 0.0;
      const HarnessResult truth = MustTrain(options);
      for (int stages = 1; stages <= 4; ++stages) {
        for (const std::string& schedule :
             SchedulesFor(static_cast<size_t>(2 * options.gpt.layers + 1), stages)) {
          for (Rematerialization rematerialization :
               {Rematerialization::kAlways, Rematerialization::kExceptFirst,
                Rematerialization::kNever}) {
            options.stages = stages;
            options.schedule = schedule;
            options.rematerialization = rematerialization;
            options.order_seed = ++order_seed;
            // Every value of each option still has its turn.
            if (kSanitized && order_seed % 5 != 0) continue;
            ExpectSameBits(options, truth);
          }
        }
      }
    }
  }
}

TEST_P(Transparency, ThreadsOfTheBackEndDoNotChangeABit) {
  HarnessOptions options = Options({5, 3}, 0.3);
  const HarnessResult truth = MustTrain(options);
  for (size_t i = 1; i < GetParam().variants.size(); ++i) {
    for (int stages : {1, 2, 3}) {
      options.stages = stages;
      options.make_backend = GetParam().variants[i];
      ExpectSameBits(options, truth);
    }
  }
}

// Guards the test itself: the comparison must be able to fail.
TEST_P(Transparency, ADifferentRunHasDifferentBits) {
  const HarnessResult truth = MustTrain(Options({4, 2}, 0.3));
  EXPECT_NE(Difference(MustTrain(Options({4, 2}, 0.2)), truth), "");
  EXPECT_NE(Difference(MustTrain(Options({4, 1}, 0.3)), truth), "");
}

TEST_P(Transparency, ACheckpointOfThreeStagesGoesOnWithAnyNumber) {
  HarnessOptions options = Options({5, 3}, 0.3);
  const HarnessResult undisturbed = MustTrain(options, 5);
  FaultFileSystem file_system;
  options.stages = 3;
  PipelineHarness three(options);
  ASSERT_TRUE(three.Train(2).ok());
  WriteCheckpoint(file_system, "/job/step-000000000002", 2, three);
  for (int stages : {1, 2, 4}) {
    options.stages = stages;
    options.schedule = "one_forward_one_backward";
    PipelineHarness resumed(options);
    LoadCheckpoint(file_system, "/job/step-000000000002", 2, resumed);
    const auto rest = resumed.Train(3);
    ASSERT_TRUE(rest.ok()) << rest.status();
    EXPECT_TRUE(rest->state == undisturbed.state) << "resumed on " << stages << " stages";
    EXPECT_THAT(rest->losses, testing::ElementsAre(undisturbed.losses[2], undisturbed.losses[3],
                                                   undisturbed.losses[4]));
  }
}

// A checkpoint holds float32 masters, so each precision goes on from the other's: the weights are
// taken over to the bit, and the next step is the one that the new precision computes from them.
TEST_P(Transparency, ACheckpointGoesOnInAnotherPrecision) {
  HarnessOptions options = Options({4, 2}, 0.3);
  PipelineHarness first(options);
  ASSERT_TRUE(first.Train(2).ok());
  FaultFileSystem file_system;
  WriteCheckpoint(file_system, "/job/step-000000000002", 2, first);
  const auto resume = [&](int stages, Precision precision) {
    options.stages = stages;
    options.precision = precision;
    auto pipeline = std::make_unique<PipelineHarness>(options);
    LoadCheckpoint(file_system, "/job/step-000000000002", 2, *pipeline);
    return pipeline;
  };
  const Precision other =
      GetParam().precision == Precision::kBfloat16 ? Precision::kFloat32 : Precision::kBfloat16;
  EXPECT_TRUE(resume(1, other)->Result().state == first.Result().state);
  const auto one = resume(1, other)->Train(2), two = resume(2, other)->Train(2);
  ASSERT_TRUE(one.ok() && two.ok()) << one.status() << two.status();
  EXPECT_EQ(Difference(*two, *one), "");
  const auto same = resume(1, GetParam().precision)->Train(2);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_NE(one->losses, same->losses) << "the other precision was not taken";
  EXPECT_NEAR(one->losses[0], same->losses[0], 2e-2 * same->losses[0]);
}

INSTANTIATE_TEST_SUITE_P(Devices, Transparency, testing::ValuesIn(Devices()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace stagecoach
