// Boundaries of stages whose memory is not the host's: the same bits as without, and no copy where
// none is needed.
#include "base/sanitized.h"
#include "base/testing/manual_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/schedules/schedule_kinds.h"
#include "stage/executor/boundary_port.h"
#include "stage/link/testing/in_process_link.h"
#include "stage/testing/pipeline_harness.h"
#include "stage/testing/staged_backend.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSteps = 3;

HarnessOptions Staged(HarnessOptions options, uint64_t copies_seed = 0) {
  options.patience = 1000;
  options.make_backend = [copies_seed, made = 0]() mutable {
    return std::make_unique<StagedBackend>(copies_seed * 100 + ++made);
  };
  return options;
}

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
      const HarnessOptions options =
          Staged({.stages = stages, .link_capacity = 1, .order_seed = seed}, seed);
      EXPECT_TRUE(Train(options) == truth) << stages << " stages, order " << seed;
    }
  }
}

// Two cells and more on each of three stages.
constexpr GptSpec kLayersForCells{
    .layers = 3, .width = 4, .heads = 2, .context = 3, .vocabulary = 7};

// Whichever copy stream is late, and whoever advances first.
TEST(BoundaryStaging, NoOrderOfCopiesChangesABit) {
  for (const std::string& schedule : ScheduleNames()) {
    HarnessOptions options{.stages = 3,
                           .gpt = kLayersForCells,
                           .batch_size = 5,
                           .micro_batches = 4,
                           .schedule = schedule,
                           .dropout = 0.25,
                           .link_capacity = 2};
    const HarnessResult truth = Train(options);
    for (uint64_t seed = 1; seed <= (kSanitized ? 8 : 30); ++seed) {
      options.order_seed = seed;
      EXPECT_TRUE(Train(Staged(options, seed)) == truth) << "seed " << seed;
    }
  }
}

TEST(BoundaryStaging, WorksBetweenACardAndAHost) {
  const HarnessResult truth = Train({});
  int made = 0;
  HarnessOptions options{.stages = 2, .patience = 1000};
  options.make_backend = [&made]() -> std::unique_ptr<Backend> {
    if (made++ == 0) return MakeReferenceBackend({});
    return std::make_unique<StagedBackend>();
  };
  EXPECT_TRUE(Train(options) == truth);
}

TEST(BoundaryStaging, WorksInBfloat16) {
  const HarnessResult truth = Train({.precision = Precision::kBfloat16});
  EXPECT_TRUE(Train(Staged({.stages = 3, .precision = Precision::kBfloat16})) == truth);
}

TEST(BoundaryStaging, CopiesEachTensorOnce) {
  const HarnessOptions options = Staged({.stages = 2, .link_capacity = 1});
  PipelineHarness pipeline(options);
  ASSERT_TRUE(pipeline.TrainStep().ok());
  auto& first = static_cast<StagedBackend&>(pipeline.backend(0));
  EXPECT_EQ(first.to_link(), options.micro_batches) << "activations";
  EXPECT_EQ(first.from_link(), options.micro_batches) << "gradients";
}

TEST(BoundaryStaging, PassesMicroBatchesWithoutSequences) {
  const HarnessOptions options = Staged({.stages = 2, .evaluation_sequences = 1});
  PipelineHarness pipeline(options);
  const auto report = pipeline.Evaluate(0);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->targets, PipelineHarness::kContext);
}

// Only a step's end, norms and losses may wait for the card; a micro-batch never does.
TEST(BoundaryStaging, WaitsForTheCardOncePerStepAndNotPerMicroBatch) {
  std::vector<int> waits;
  for (const int64_t micro_batches : {2, 8}) {
    PipelineHarness pipeline(
        Staged({.stages = 2, .batch_size = 8, .micro_batches = micro_batches}));
    const auto& first = static_cast<StagedBackend&>(pipeline.backend(0));
    const int before = first.synchronized();
    ASSERT_TRUE(pipeline.TrainStep().ok());
    waits.push_back(first.synchronized() - before);
    EXPECT_EQ(first.ids(), micro_batches) << "they are copied as boundaries are";
  }
  EXPECT_EQ(waits[0], waits[1]);
}

// Each copy to the host waits for the card.
TEST(BoundaryStaging, ReadsLossesByOneCopyAndNormsByOneCopy) {
  for (const int64_t micro_batches : {2, 8}) {
    PipelineHarness pipeline(Staged(
        {.stages = 2, .batch_size = 8, .micro_batches = micro_batches, .evaluation_sequences = 3}));
    const auto copies = [&](const absl::Status& status, int stage) {
      EXPECT_TRUE(status.ok()) << status;
      return static_cast<StagedBackend&>(pipeline.backend(stage)).to_host();
    };
    const int first = copies(absl::OkStatus(), 0), last = copies(absl::OkStatus(), 1);
    const absl::Status trained = pipeline.TrainStep();
    EXPECT_EQ(copies(trained, 0) - first, 1) << "norms";
    EXPECT_EQ(copies(trained, 1) - last, 2) << "losses and norms";
    const auto evaluated = pipeline.Evaluate(0);
    EXPECT_EQ(copies(evaluated.status(), 0) - first, 1);
    EXPECT_EQ(copies(evaluated.status(), 1) - last, 3) << "losses";
  }
}

class OutboxTest : public ::testing::Test {
 protected:
  OutboxTest() { backend_.api().run_per_query = 0; }
  Tensors Make() {
    return {*MakeTensor(backend_.allocator(), MemoryKind::kActivations, DType::kF32, Shape{1, 4})};
  }
  bool Send(int micro_batch, Tensors* tuple) {
    const auto sent = port_.TrySend(MessageKind::kActivation, {}, MicroBatchId(micro_batch), tuple);
    EXPECT_TRUE(sent.ok()) << sent.status();
    return sent.ok() && *sent;
  }

  StagedBackend backend_;
  std::pair<std::unique_ptr<Link>, std::unique_ptr<Link>> links_ =
      MakeInProcessLinkPair({.capacity_messages = 1});
  PhaseClock phases_{SystemClock::Get()};
  const std::vector<ValueType> types_ = {ActivationType({1, 4})};
  BoundaryPort port_{{.link = links_.first.get(),
                      .self = StageId(0),
                      .peer = StageId(1),
                      .outgoing = types_,
                      .incoming = types_,
                      .phases = &phases_,
                      .clock = SystemClock::Get(),
                      .backend = &backend_}};
};

TEST_F(OutboxTest, SendsInOrderWhenCopiesHaveRunAndTheLinkHasRoom) {
  Tensors a = Make(), b = Make(), c = Make();
  EXPECT_TRUE(Send(0, &a));
  EXPECT_TRUE(Send(1, &b));
  EXPECT_TRUE(a.empty() && b.empty());
  EXPECT_FALSE(Send(2, &c)) << "memory that copies hold is bounded";
  EXPECT_EQ(c.size(), 1u);
  EXPECT_FALSE(*port_.SendWaiting()) << "no copy has run";
  EXPECT_FALSE(links_.second->TryReceive().has_value());
  backend_.api().RunAll();
  EXPECT_TRUE(*port_.SendWaiting());
  EXPECT_FALSE(*port_.SendWaiting()) << "the link is full";
  EXPECT_EQ(port_.waiting_micro_batch(), MicroBatchId(1));
  c.clear();
  EXPECT_EQ(backend_.allocator().Use().total_current, 0) << "a copied tensor's place is free";
  EXPECT_EQ(links_.second->TryReceive()->micro_batch, MicroBatchId(0));
  EXPECT_TRUE(*port_.SendWaiting());
  EXPECT_FALSE(port_.waiting());
  EXPECT_EQ(links_.second->TryReceive()->micro_batch, MicroBatchId(1));
  EXPECT_EQ(backend_.to_link(), 2);
}

TEST_F(OutboxTest, BooksTheLinkAsSendAndTheCardAsWhatItDoes) {
  Tensors tensors[] = {Make(), Make(), Make(), Make()};
  phases_.Enter(Phase::kForward, MicroBatchId(0));
  EXPECT_TRUE(Send(0, &tensors[0]));
  EXPECT_TRUE(Send(1, &tensors[1]));
  EXPECT_FALSE(*port_.SendWaiting());
  EXPECT_FALSE(Send(2, &tensors[2]));
  EXPECT_EQ(phases_.current(), Phase::kForward) << "what is waited for is the card";
  backend_.api().RunAll();
  EXPECT_TRUE(*port_.SendWaiting());
  EXPECT_TRUE(Send(2, &tensors[2]));
  EXPECT_FALSE(Send(3, &tensors[3]));
  EXPECT_EQ(phases_.current(), Phase::kSend) << "what is waited for is the neighbour";
}

TEST_F(OutboxTest, DropsWhatWaitsWhileCopiesAreUnderWay) {
  Tensors a = Make();
  EXPECT_TRUE(Send(0, &a));
  port_.DropWaiting();
  EXPECT_GT(backend_.link_allocator().Use().total_current, 0) << "the copy will write it";
  backend_.api().RunAll();
  backend_.EndLinkCopies();
  EXPECT_EQ(backend_.link_allocator().Use().total_current, 0);
  EXPECT_EQ(backend_.allocator().Use().total_current, 0);
}

TEST_F(OutboxTest, SaysWhyItsLinkDoesNotTakeIt) {
  Tensors a = Make();
  EXPECT_TRUE(Send(0, &a));
  links_.second->Close(absl::UnavailableError("gone"));
  backend_.api().RunAll();
  const absl::Status status = port_.SendWaiting().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("link to stage 1"), HasSubstr("gone")));
}

// A step whose last message has not left is not over: its executor waits for it by name.
TEST(BoundaryStaging, AStepEndsWithAnEmptyOutbox) {
  PipelineHarness pipeline(
      Staged({.stages = 2, .batch_size = 2, .micro_batches = 1, .evaluation_sequences = 2}));
  auto& first = static_cast<StagedBackend&>(pipeline.backend(0));
  first.api().run_per_query = 0;
  pipeline.set_step(17);
  StepWork work = pipeline.Work(0, false);
  StageExecutor& stage = pipeline.executor(0);
  stage.BeginStep(work);
  EXPECT_EQ(*stage.Advance(), Progress::kBlocked);
  EXPECT_THAT(stage.WaitingFor(),
              AllOf(HasSubstr("stage 0 waits to send activation of micro-batch 0 to stage 1"),
                    HasSubstr("step 17")));
  EXPECT_EQ(*stage.Advance(), Progress::kBlocked);
  first.api().RunAll();
  EXPECT_EQ(*stage.Advance(), Progress::kFinished);
  EXPECT_EQ(stage.WaitingFor(), "");
}

// Where the card has a clock, computing is booked by it, to the nanosecond, and waits are what is
// left: the host launches all in a few microseconds, the card takes ten for each operation.
TEST(BoundaryStaging, BooksTheCardsTimeWhereItHasAClock) {
  constexpr int64_t kOperation = 10000;
  ManualClock clock;
  PipelineHarness pipeline(Staged({.stages = 1,
                                   .batch_size = 4,
                                   .micro_batches = 4,
                                   .rematerialization = Rematerialization::kNever}),
                           &clock);
  auto& card = static_cast<StagedBackend&>(pipeline.backend(0));
  card.UseClock(kOperation);
  StageExecutor& stage = pipeline.executor(0);
  for (int step = 0; step < 2; ++step) {
    pipeline.set_step(step);
    const int64_t begin = clock.MonotonicNanos();
    const StepWork work = pipeline.Work(0, true);
    stage.BeginStep(work);
    int forward = 0;
    for (size_t i = 0; i < work.program->instructions.size(); ++i) {
      const bool last = i + 1 == work.program->instructions.size();
      if (last) clock.AdvanceNanos(1000 * kOperation);  // waits for the card
      const int before = card.operations();
      const auto progress = stage.Advance(1);
      ASSERT_TRUE(progress.ok()) << progress.status();
      ASSERT_EQ(*progress == Progress::kFinished, last);
      if (pipeline.phases(0).current() == Phase::kForward) forward += card.operations() - before;
      clock.AdvanceNanos(10);
    }
    const StepReport report = stage.TakeReport();
    EXPECT_GT(forward, 0);
    EXPECT_NEAR(report.phases[Phase::kForward], forward * kOperation * 1e-9, 1e-12);
    EXPECT_NEAR(report.phases.Sum(), report.step_seconds, 1e-12);
    EXPECT_NEAR(report.step_seconds, (clock.MonotonicNanos() - 10 - begin) * 1e-9, 1e-12);
  }
}

TEST(BoundaryStaging, AStepThatIsGivenUpIsBookedAsTheHostSawIt) {
  ManualClock clock;
  PipelineHarness pipeline(Staged({.stages = 2}), &clock);
  auto& card = static_cast<StagedBackend&>(pipeline.backend(0));
  card.UseClock(100);
  pipeline.executor(0).BeginStep(pipeline.Work(0, true));
  clock.AdvanceNanos(70);
  EXPECT_EQ(pipeline.phases(0).TotalNanos()[static_cast<int>(Phase::kIdle)], 0);
  pipeline.executor(0).Abandon();
  EXPECT_EQ(pipeline.phases(0).TotalNanos()[static_cast<int>(Phase::kIdle)], 70);
  EXPECT_FALSE(pipeline.phases(0).deferring());
  pipeline.executor(0).BeginStep(pipeline.Work(0, true));  // and the next one begins afresh
  pipeline.executor(0).Abandon();
}

TEST(BoundaryStaging, AnAbandonedStepLeavesNothingBehind) {
  PipelineHarness pipeline(Staged({.stages = 2}));
  auto& first = static_cast<StagedBackend&>(pipeline.backend(0));
  const int64_t before = first.allocator().Use().total_current;
  first.api().run_per_query = 0;
  pipeline.executor(0).BeginStep(pipeline.Work(0, true));
  EXPECT_EQ(*pipeline.executor(0).Advance(), Progress::kBlocked);
  pipeline.executor(0).Abandon();
  first.api().RunAll();
  first.EndLinkCopies();
  EXPECT_EQ(first.allocator().Use().total_current, before);
  EXPECT_EQ(first.link_allocator().Use().total_current, 0) << "nothing of it may reach the link";
}

TEST(BoundaryStaging, EndsTheStepWithTheReasonOfABrokenCard) {
  const HarnessOptions options = Staged({.stages = 2});
  PipelineHarness pipeline(options);
  static_cast<StagedBackend&>(pipeline.backend(0)).api().fault = FakeDeviceApi::kIllegalAddress;
  const absl::Status status = pipeline.TrainStep();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("cudaErrorIllegalAddress"));
}

}  // namespace
}  // namespace stagecoach
