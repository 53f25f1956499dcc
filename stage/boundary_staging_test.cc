// Boundaries of stages whose memory is not the host's: the same bits as without, and no copy where
// none is needed.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/boundary_port.h"
#include "stage/testing/pipeline_harness.h"
#include "stage/testing/staged_backend.h"

namespace stagecoach {
namespace {

constexpr int kSteps = 3;

HarnessResult Train(HarnessOptions options) {
  PipelineHarness pipeline(options);
  auto result = pipeline.Train(kSteps);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : HarnessResult{};
}

TEST(BoundaryStaging, HasTheSameBitsForEveryNumberOfStages) {
  const HarnessResult truth = Train({});
  ASSERT_EQ(truth.losses.size(), size_t{kSteps});
  for (const int stages : {1, 2, 3}) {
    for (const uint64_t seed : {1, 2, 3}) {
      HarnessOptions options{.stages = stages, .link_capacity = 1, .order_seed = seed};
      options.make_backend = [] { return std::make_unique<StagedBackend>(); };
      EXPECT_TRUE(Train(options) == truth) << stages << " stages, order " << seed;
    }
  }
}

TEST(BoundaryStaging, WorksBetweenACardAndAHost) {
  const HarnessResult truth = Train({});
  int made = 0;
  HarnessOptions options{.stages = 2};
  options.make_backend = [&made]() -> std::unique_ptr<Backend> {
    if (made++ == 0) return MakeReferenceBackend({});
    return std::make_unique<StagedBackend>();
  };
  EXPECT_TRUE(Train(options) == truth);
}

TEST(BoundaryStaging, WorksInBfloat16) {
  const HarnessResult truth = Train({.precision = Precision::kBfloat16});
  HarnessOptions options{.stages = 3, .precision = Precision::kBfloat16};
  options.make_backend = [] { return std::make_unique<StagedBackend>(); };
  EXPECT_TRUE(Train(options) == truth);
}

TEST(BoundaryStaging, CopiesEachTensorOnce) {
  HarnessOptions options{.stages = 2, .link_capacity = 1};
  options.make_backend = [] { return std::make_unique<StagedBackend>(); };
  PipelineHarness pipeline(options);
  ASSERT_TRUE(pipeline.TrainStep().ok());
  auto& first = static_cast<StagedBackend&>(pipeline.backend(0));
  EXPECT_EQ(first.to_link(), options.micro_batches) << "activations";
  EXPECT_EQ(first.from_link(), options.micro_batches) << "gradients";
}

TEST(BoundaryStaging, PassesMicroBatchesWithoutSequences) {
  HarnessOptions options{.stages = 2, .evaluation_sequences = 1};
  options.make_backend = [] { return std::make_unique<StagedBackend>(); };
  PipelineHarness pipeline(options);
  const auto report = pipeline.Evaluate(0);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->tokens, PipelineHarness::kContext);
}

// A refused tensor is not copied again, and its place on the card is free while it waits.
TEST(BoundaryStaging, KeepsTheCopyOfARefusedTensor) {
  StagedBackend backend;
  auto [link, peer] = MakeInProcessLinkPair({.capacity_messages = 1});
  PhaseClock phases(SystemClock::Get());
  BoundaryPort port({link.get(), StageId(0), StageId(1), 4, 1, DType::kF32, &phases,
                     SystemClock::Get(), &backend});
  const auto make = [&] {
    return *MakeTensor(backend.allocator(), MemoryKind::kActivations, DType::kF32, Shape{1, 4});
  };
  Tensor a = make(), b = make();
  EXPECT_TRUE(*port.TrySend({}, MicroBatchId(0), &a));
  EXPECT_FALSE(*port.TrySend({}, MicroBatchId(1), &b));
  EXPECT_FALSE(*port.TrySend({}, MicroBatchId(1), &b));
  EXPECT_EQ(backend.to_link(), 2);
  EXPECT_EQ(backend.allocator().Use().total_current, 0);
  ASSERT_TRUE(peer->TryReceive().has_value());
  EXPECT_TRUE(*port.TrySend({}, MicroBatchId(1), &b));
  EXPECT_FALSE(b.valid());
  EXPECT_EQ(backend.to_link(), 2);
}

TEST(BoundaryStaging, EndsTheStepWithTheReasonOfABrokenCard) {
  HarnessOptions options{.stages = 2};
  options.make_backend = [] { return std::make_unique<StagedBackend>(); };
  PipelineHarness pipeline(options);
  static_cast<StagedBackend&>(pipeline.backend(0)).api().fault = FakeDeviceApi::kIllegalAddress;
  const absl::Status status = pipeline.TrainStep();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("cudaErrorIllegalAddress"));
}

}  // namespace
}  // namespace stagecoach
