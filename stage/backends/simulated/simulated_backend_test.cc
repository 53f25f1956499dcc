#include "stage/backends/simulated/simulated_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/numbers/bfloat16.h"
#include "base/testing/manual_clock.h"
#include "base/threads/progress.h"
#include "operations/catalogue.h"
#include "operations/linear.h"
#include "operations/norms/layer_norm.h"
#include "operations/norms/rms_norm.h"
#include "stage/backends/loss_testing.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

// A machine whose sleeps end late by a given time.
class Machine {
 public:
  explicit Machine(int64_t late_nanos = 0) : late_nanos_(late_nanos) {}
  DeviceTimeline::SleepUntil sleep() {
    return [this](int64_t end) {
      ++sleeps_;
      clock_.AdvanceNanos(std::max<int64_t>(0, end - clock_.MonotonicNanos()) + late_nanos_);
    };
  }
  ManualClock& clock() { return clock_; }
  int sleeps() const { return sleeps_; }

 private:
  const int64_t late_nanos_;
  ManualClock clock_{1'000'000};
  int sleeps_ = 0;
};

TEST(DeviceTimeline, LateWakeUpsAndHostWorkDoNotAddUp) {
  Machine machine(/*late_nanos=*/300'000);
  DeviceTimeline timeline(&machine.clock(), machine.sleep());
  const int64_t start = machine.clock().MonotonicNanos();
  for (int i = 0; i < 100; ++i) {
    timeline.Queue(1'000'000);
    machine.clock().AdvanceNanos(10'000);  // zeros are written
    timeline.Wait();
    machine.clock().AdvanceNanos(10'000);  // the next operation is prepared
  }
  const int64_t took = machine.clock().MonotonicNanos() - start;
  EXPECT_EQ(took, 100'000'000 + 300'000 + 10'000) << "only the last delay is seen";
}

TEST(DeviceTimeline, ADeviceThatHadNothingToDoStartsWhenItIsAsked) {
  Machine machine;
  DeviceTimeline timeline(&machine.clock(), machine.sleep());
  timeline.Queue(1'000'000);
  timeline.Wait();
  machine.clock().AdvanceNanos(5'000'000);  // a message is waited for
  const int64_t start = machine.clock().MonotonicNanos();
  timeline.Queue(1'000'000);
  timeline.Wait();
  EXPECT_EQ(machine.clock().MonotonicNanos() - start, 1'000'000);
}

TEST(DeviceTimeline, ShortOperationsAreWaitedForTogether) {
  Machine machine;
  DeviceTimeline timeline(&machine.clock(), machine.sleep());
  const int64_t start = machine.clock().MonotonicNanos();
  for (int i = 0; i < 103; ++i) {
    timeline.Queue(10'000);
    timeline.Wait();
  }
  EXPECT_LE(machine.sleeps(), 21);
  timeline.Finish();
  EXPECT_EQ(machine.clock().MonotonicNanos() - start, 1'030'000);
}

// Symptom: one operation of minutes looked like a stage that is stuck.
TEST(DeviceTimeline, ALongOperationIsSeenToGetOnAndTakesNoLongerForIt) {
  Machine machine(/*late_nanos=*/300'000);
  DeviceTimeline timeline(&machine.clock(), machine.sleep());
  ProgressCounter progress;
  const ProgressScope scope(&progress);
  const int64_t start = machine.clock().MonotonicNanos();
  timeline.Queue(600'000'000'000);
  timeline.Wait();
  EXPECT_EQ(machine.clock().MonotonicNanos() - start, 600'000'300'000) << "late once";
  EXPECT_GE(progress.count(), 1198u) << "twice a second";
}

// Symptom: of a network with large images the profile said that its last layers take no time, so
// that the partition gave eleven layers of 24 to the last of four stages. Cause: where writing
// zeros took longer than the operation, the device fell behind, and later operations made up for
// it, whoever had waited for the device in between.
TEST(DeviceTimeline, WhoHasWaitedForTheDeviceDoesNotGetTheNextOperationForFree) {
  Machine machine;
  DeviceTimeline timeline(&machine.clock(), machine.sleep());
  for (int i = 0; i < 10; ++i) {
    timeline.Queue(1'000'000);
    machine.clock().AdvanceNanos(5'000'000);  // many zeros are written
    timeline.Wait();
  }
  timeline.Finish();
  const int64_t start = machine.clock().MonotonicNanos();
  timeline.Queue(20'000'000);
  timeline.Finish();
  EXPECT_EQ(machine.clock().MonotonicNanos() - start, 20'000'000);
}

TEST(DeviceTimeline, PreciseSleepEndsAfterItsTime) {
  const Clock* clock = SystemClock::Get();
  const int64_t end = clock->MonotonicNanos() + 2'000'000;
  PreciseSleepUntil(end);
  EXPECT_GE(clock->MonotonicNanos(), end);
}

TEST(SimulatedDevice, ParsesItsRate) {
  EXPECT_EQ(ParseSimulatedDevice("simulated")->flops_per_second, 50e9);
  EXPECT_EQ(ParseSimulatedDevice("simulated:20")->flops_per_second, 20e9);
  EXPECT_EQ(ParseSimulatedDevice("simulated:0.5")->bytes_per_second, 0.5e9);
  EXPECT_EQ(ParseSimulatedDevice("simulated:20:0.6")->flops_per_second, 20e9);
  EXPECT_EQ(ParseSimulatedDevice("simulated:20:0.6")->bytes_per_second, 0.6e9);
  for (const char* bad : {"simulated:", "simulated:20:", "simulated::20", "simulated:20:0.6:1",
                          "simulated:20:x", "simulated:0", "simulated:-1", "simulated:nan",
                          "simulated:x", "simulated20", "cpu", "simulated:1e10"}) {
    const auto device = ParseSimulatedDevice(bad);
    EXPECT_FALSE(device.ok()) << bad;
    EXPECT_THAT(std::string(device.status().message()), HasSubstr(bad));
  }
}

class SimulatedBackendTest : public testing::Test {
 protected:
  Tensor Make(int64_t rows, int64_t width, DType dtype = DType::kF32) {
    auto tensor =
        MakeTensor(backend_.allocator(), MemoryKind::kActivations, dtype, Shape{rows, width});
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    backend_.Fill(*tensor, 7.0f);
    EXPECT_TRUE(backend_.Synchronize().ok());
    return *tensor;
  }

  Machine machine_;
  SimulatedBackend backend_{
      {}, {.flops_per_second = 1e9, .bytes_per_second = 1e9}, &machine_.clock(), machine_.sleep()};
};

TEST_F(SimulatedBackendTest, AProductTakesItsFlopsAndItsBytesAndLeavesZeros) {
  const Tensor x = Make(10, 20), weight = Make(30, 20), y = Make(10, 30);
  machine_.clock().AdvanceNanos(1'000'000);
  const int64_t start = machine_.clock().MonotonicNanos();
  RunOn(backend_, {.operation = "linear", .inputs = {x, Whole(weight)}, .outputs = {y}});
  ASSERT_TRUE(backend_.Synchronize().ok());
  const int64_t flops = 2 * 10 * 20 * 30, bytes = 4 * (10 * 20 + 30 * 20 + 10 * 30);
  EXPECT_EQ(machine_.clock().MonotonicNanos() - start, flops + bytes);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(y.data<float>()[i], 0.0f);
  EXPECT_EQ(x.data<float>()[0], 7.0f) << "an operand stays";
}

TEST_F(SimulatedBackendTest, AResidualTakesItsAdditionAndItsBytes) {
  const Tensor x = Make(10, 20), weight = Make(20, 20), y = Make(10, 20), residual = Make(10, 20);
  const Tensor statistics = Make(10, 1), scale = Make(1, 20);
  for (const bool norm : {false, true}) {
    const auto nanos = [&](const Tensor& addend) {
      machine_.clock().AdvanceNanos(1'000'000);
      const int64_t start = machine_.clock().MonotonicNanos();
      const bool adds = addend.valid();
      TensorCall call{.operation = "linear",
                      .attributes = ToAttributes(LinearAttributes{.residual = adds}),
                      .inputs = {x, Whole(weight)},
                      .outputs = {y}};
      if (norm) {
        call.operation = "layer_norm_input_gradient";
        call.attributes = ToAttributes(LayerNormGradientAttributes{.residual = adds});
        call.inputs = {x, x, Whole(scale), statistics, statistics};
      }
      if (adds) call.inputs.push_back(addend);
      RunOn(backend_, call);
      EXPECT_TRUE(backend_.Synchronize().ok());
      return machine_.clock().MonotonicNanos() - start;
    };
    EXPECT_NEAR(nanos(residual) - nanos({}), 10 * 20 * (1 + 4), 1) << norm;  // truncated each
  }
  EXPECT_EQ(residual.data<float>()[199], 7.0f) << "an operand stays";
}

TEST_F(SimulatedBackendTest, InBfloat16AProductMovesHalfTheBytes) {
  const Tensor x = Make(10, 20, DType::kBF16), weight = Make(30, 20, DType::kBF16);
  const Tensor y = Make(10, 30, DType::kBF16);
  EXPECT_EQ(static_cast<float>(x.data<Bfloat16>()[199]), 7.0f);
  machine_.clock().AdvanceNanos(1'000'000);
  const int64_t start = machine_.clock().MonotonicNanos();
  RunOn(backend_, {.operation = "linear", .inputs = {x, Whole(weight)}, .outputs = {y}});
  ASSERT_TRUE(backend_.Synchronize().ok());
  const int64_t flops = 2 * 10 * 20 * 30, bytes = 2 * (10 * 20 + 30 * 20 + 10 * 30);
  EXPECT_EQ(machine_.clock().MonotonicNanos() - start, flops + bytes);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(y.data<Bfloat16>()[i].bits, 0);
}

TEST_F(SimulatedBackendTest, BackwardPartsTakeTheTimeOfTheirProducts) {
  const Tensor x = Make(10, 20), weight = Make(30, 20), dy = Make(10, 30), dx = Make(10, 20);
  for (int part = 0; part < 2; ++part) {
    machine_.clock().AdvanceNanos(1'000'000);
    const int64_t start = machine_.clock().MonotonicNanos();
    const TensorCall input{
        .operation = "linear_input_gradient", .inputs = {dy, Whole(weight)}, .outputs = {dx}};
    const TensorCall weights{
        .operation = "linear_weight_gradient", .inputs = {dy, x}, .adds = {weight}};
    RunOn(backend_, part == 0 ? input : weights);
    ASSERT_TRUE(backend_.Synchronize().ok());
    EXPECT_EQ(machine_.clock().MonotonicNanos() - start, 12000 + 4400) << "part " << part;
  }
  EXPECT_EQ(weight.data<float>()[0], 7.0f) << "a gradient of zero was added";
}

TEST_F(SimulatedBackendTest, AKernelTakesWhatItsOperationCostsAndItsBytes) {
  const ValueType x = ActivationType({10, 20}), weight = WeightType(Element::kFloat32, {20});
  const CallTypes types = {{x, weight}, {x, {Element::kFloat32, Leading::kSamples, {10}}}, {}};
  const Call call = {.operation = "rms_norm", .attributes = ToAttributes(RmsNormAttributes{})};
  const auto kernel = backend_.Prepare(call, types, DType::kF32);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  Tensors in = {Make(10, 20), Make(1, 20)}, out = {Make(10, 20), Make(1, 10)};
  machine_.clock().AdvanceNanos(1'000'000);
  const int64_t start = machine_.clock().MonotonicNanos();
  (*kernel)({{.sequences = 1}, 0}, {PlacesOf(in), PlacesOf(out), Operands()});
  ASSERT_TRUE(backend_.Synchronize().ok());
  const int64_t flops = OperationNamed("rms_norm").CostOf(call.attributes, types, 1).flops;
  EXPECT_GT(flops, 0);
  EXPECT_EQ(machine_.clock().MonotonicNanos() - start, flops + 4 * (200 + 20 + 200 + 10));
  EXPECT_EQ(out[0].data<float>()[199], 0.0f);
  EXPECT_EQ(in[0].data<float>()[199], 7.0f) << "an operand stays";
}

// A table of a large vocabulary would take longer than all else.
TEST_F(SimulatedBackendTest, OfATableTheRowsThatIdsPickAreMoved) {
  const Tensor table = Make(1000, 20), y = Make(10, 20), position = Make(5, 20);
  auto ids = MakeTensor(backend_.allocator(), MemoryKind::kActivations, DType::kI32, Shape{10});
  ASSERT_TRUE(ids.ok());
  const TensorCall forward{.operation = "embedding",
                           .inputs = {*ids, Whole(table), Whole(position)},
                           .outputs = {y},
                           .samples = 2};
  const TensorCall backward{.operation = "embedding_weight_gradient",
                            .inputs = {*ids, y},
                            .adds = {table, position},
                            .samples = 2};
  for (const TensorCall& call : {forward, backward}) {
    machine_.clock().AdvanceNanos(1'000'000);
    const int64_t start = machine_.clock().MonotonicNanos();
    RunOn(backend_, call);
    ASSERT_TRUE(backend_.Synchronize().ok());
    EXPECT_EQ(machine_.clock().MonotonicNanos() - start, 2 * 200 + 4 * (10 + 200))
        << call.operation;
  }
}

TEST_F(SimulatedBackendTest, AnOperationThatIsNotInTheCatalogueIsAnError) {
  const absl::Status status = backend_.Prepare({.operation = "levitate"}, {}, DType::kF32).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("simulated"));
}

TEST_F(SimulatedBackendTest, TheLossIsThatOfZeroLogits) {
  const Tensor logits = Make(6, 11);
  auto targets = MakeTensor(backend_.allocator(), MemoryKind::kActivations, DType::kI32, Shape{6});
  auto sums = MakeTensor(backend_.allocator(), MemoryKind::kWorkspace, DType::kF64, Shape{2});
  ASSERT_TRUE(targets.ok() && sums.ok());
  RunLoss(backend_, {logits, *targets, *sums, Make(1, 1), logits});
  std::array<double, 2> values = {};
  backend_.CopyToHost(*sums, std::as_writable_bytes(std::span(values)));
  EXPECT_DOUBLE_EQ(values[0], 6 * std::log(11.0));
  EXPECT_EQ(values[1], 6);
  EXPECT_EQ(logits.data<float>()[5], 0.0f);
}

}  // namespace
}  // namespace stagecoach
