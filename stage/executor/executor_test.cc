// The executor alone: K of them in one thread, in orders drawn from a seed. That the bits do not
// depend on K and the rest of the matrix is tests/transparency.
#include "stage/executor/executor.h"

#include <numeric>

#include "base/sanitized.h"
#include "base/testing/manual_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/schedules/schedule_kinds.h"
#include "stage/testing/pipeline_harness.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

std::string Text(const absl::Status& status) { return std::string(status.message()); }

constexpr uint64_t kOrders = kSanitized ? 8 : 500;

// Two cells and more on each of three stages.
constexpr GptSpec kSevenLayers{.layers = 3, .width = 4, .heads = 2, .context = 3, .vocabulary = 7};

// Protects the promise that no order of events changes a bit: hundreds of orders, one result.
TEST(Executor, EveryInterleavingGivesTheSameBits) {
  for (const std::string& schedule : ScheduleNames()) {
    HarnessOptions options{.stages = 3,
                           .gpt = kSevenLayers,
                           .batch_size = 5,
                           .micro_batches = 4,
                           .schedule = schedule,
                           .dropout = 0.25,
                           .link_capacity = 2};
    const auto expected = PipelineHarness(options).Train(2);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (uint64_t seed = 1; seed <= kOrders; ++seed) {
      options.order_seed = seed;
      const auto result = PipelineHarness(options).Train(2);
      ASSERT_TRUE(result.ok()) << "order seed " << seed << ": " << result.status();
      ASSERT_TRUE(*result == *expected) << "order seed " << seed;
    }
  }
}

TEST(Executor, TrainingLowersTheLoss) {
  PipelineHarness pipeline({.stages = 2, .batch_size = 2, .micro_batches = 1});
  std::vector<double> losses;
  for (int i = 0; i < 30; ++i) {
    pipeline.set_step(0);  // the same mini-batch again and again
    ASSERT_TRUE(pipeline.TrainStep().ok());
  }
  losses = pipeline.Result().losses;
  EXPECT_NEAR(losses.front() / 6, std::log(7.0), 0.1) << "fresh weights know nothing";
  EXPECT_LT(losses.back(), 0.5 * losses.front());
}

TEST(Executor, ReportsWhatAStageKnows) {
  PipelineHarness pipeline({.stages = 3, .batch_size = 5, .micro_batches = 2});
  const auto reports = pipeline.RunPass(true, 0);
  ASSERT_TRUE(reports.ok()) << reports.status();
  EXPECT_FALSE((*reports)[0].has_loss);
  EXPECT_TRUE((*reports)[2].has_loss);
  EXPECT_EQ((*reports)[2].targets, 5 * PipelineHarness::kContext);
  EXPECT_EQ((*reports)[0].fence.job, "a");
  size_t layers = 0;
  for (const StepReport& report : *reports) {
    EXPECT_TRUE(report.finite);
    layers += report.layer_squared_norms.size();
    EXPECT_NEAR(report.phases.Sum(), report.step_seconds, 1e-9);
  }
  EXPECT_EQ(layers, 7u);
}

// Another source's samples, with padding that a test can add up.
class PaddedSource final : public BatchSource {
 public:
  explicit PaddedSource(const MadeUpSource::Sizes& sizes) : samples_(sizes) {}
  const DatasetManifest& manifest() const override { return samples_.manifest(); }
  absl::StatusOr<HostBatch> Train(uint64_t step, MicroBatchId micro_batch,
                                  std::span<const std::string> names) const override {
    ASSIGN_OR_RETURN(HostBatch batch, samples_.Train(step, micro_batch, names));
    batch.padding = {.positions = 10 + micro_batch.value, .padded = micro_batch.value};
    return batch;
  }
  absl::StatusOr<HostBatch> Evaluation(uint64_t batch, MicroBatchId micro_batch,
                                       std::span<const std::string> names) const override {
    return samples_.Evaluation(batch, micro_batch, names);
  }
  int64_t evaluation_batches() const override { return samples_.evaluation_batches(); }

 private:
  const MadeUpSource samples_;
};

// Of one stage, both inputs and targets are read.
TEST(Executor, ReportsThePaddingOfAMiniBatchOnceForEveryK) {
  for (const int stages : {1, 2, 3}) {
    HarnessOptions options{.stages = stages, .batch_size = 5, .micro_batches = 4};
    options.source =
        std::make_shared<PaddedSource>(MadeUpSource::Sizes{.batch_size = 5,
                                                           .micro_batches = 4,
                                                           .context = PipelineHarness::kContext,
                                                           .vocabulary = options.gpt.vocabulary});
    PipelineHarness pipeline(options);
    for (int step = 0; step < 2; ++step) {
      const auto reports = pipeline.RunPass(true, 0);
      ASSERT_TRUE(reports.ok()) << reports.status();
      for (int k = 0; k < stages; ++k) {
        const bool last = k + 1 == stages;
        EXPECT_EQ((*reports)[static_cast<size_t>(k)].padding,
                  (PaddingCount{.positions = last ? 46 : 0, .padded = last ? 6 : 0}))
            << "stage " << k << " of " << stages;
      }
    }
  }
}

TEST(Executor, EvaluationLeavesWeightsAndGradientsAlone) {
  PipelineHarness pipeline({.stages = 2, .dropout = 0.5, .evaluation_sequences = 4});
  const HarnessResult before = pipeline.Result();
  const auto first = pipeline.Evaluate(0);
  const auto second = pipeline.Evaluate(0);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(first->loss_sum, second->loss_sum) << "no dropout, no state";
  EXPECT_TRUE(first->layer_squared_norms.empty());
  EXPECT_TRUE(pipeline.Result() == before);
  for (int k = 0; k < 2; ++k) {
    const auto norms = pipeline.cell(k).LayerSquaredGradientNorms();
    ASSERT_TRUE(norms.ok());
    for (double norm : *norms) EXPECT_EQ(norm, 0.0);
  }
}

// The held-out split ends inside a mini-batch: 5 + 1 sequences in batches of 5, in 4 micro-batches.
TEST(Executor, ShortEvaluationBatchCountsOnlyWhatIsThere) {
  std::vector<double> losses;
  for (int stages : {1, 2, 4}) {
    PipelineHarness pipeline(
        {.stages = stages, .batch_size = 5, .micro_batches = 4, .evaluation_sequences = 6});
    const auto full = pipeline.Evaluate(0);
    ASSERT_TRUE(full.ok()) << full.status();
    EXPECT_EQ(full->targets, 5 * PipelineHarness::kContext);
    const auto last = pipeline.Evaluate(1);
    ASSERT_TRUE(last.ok()) << last.status();
    EXPECT_EQ(last->targets, 1 * PipelineHarness::kContext);
    EXPECT_GT(last->loss_sum, 0.0);
    losses.push_back(last->loss_sum);
    const auto none = pipeline.Evaluate(2);
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_EQ(none->targets, 0);
    EXPECT_EQ(none->loss_sum, 0.0);
    ASSERT_TRUE(pipeline.TrainStep().ok()) << "and training goes on";
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[0], losses[2]);
}

TEST(Executor, NamesWhatABlockedStageWaitsFor) {
  PipelineHarness pipeline({.stages = 2, .batch_size = 2, .micro_batches = 2});
  pipeline.set_step(17);
  StageExecutor& stage = pipeline.executor(1);
  EXPECT_EQ(stage.WaitingFor(), "");
  stage.BeginStep(pipeline.Work(1, true));
  const auto progress = stage.Advance();
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(*progress, Progress::kBlocked);
  EXPECT_EQ(stage.WaitingFor(),
            "stage 1 waits for activation of micro-batch 0 from stage 0 (job a term 1 generation 1 "
            "step 17 attempt 0)");
  EXPECT_EQ(stage.current_micro_batch(), MicroBatchId(0));
  stage.Abandon();
  EXPECT_EQ(stage.WaitingFor(), "");
}

TEST(Executor, WaitsToSendWhileTheNeighbourHasNoRoom) {
  PipelineHarness pipeline({.stages = 2, .batch_size = 3, .micro_batches = 3, .link_capacity = 2});
  StageExecutor& stage = pipeline.executor(0);
  stage.BeginStep(pipeline.Work(0, true));
  ASSERT_TRUE(stage.Advance().ok());
  EXPECT_THAT(stage.WaitingFor(),
              HasSubstr("stage 0 waits to send activation of micro-batch 2 to stage 1"));
  ASSERT_TRUE(stage.Advance().ok()) << "the refused message is kept for another try";
  EXPECT_EQ(pipeline.phases(0).current(), Phase::kSend);
  ASSERT_TRUE(pipeline.upstream(1)->TryReceive().has_value());
  ASSERT_TRUE(stage.Advance().ok());
  EXPECT_THAT(stage.WaitingFor(), HasSubstr("waits for gradient of micro-batch 0 from stage 1"));
  stage.Abandon();
}

// A message as stage 0 would send it, for stage 1 of a pipeline of two.
class ForeignMessage : public testing::Test {
 protected:
  void SetUp() override {
    pipeline_.set_step(17);
    pipeline_.executor(1).BeginStep(pipeline_.Work(1, true));
  }
  void TearDown() override { pipeline_.executor(1).Abandon(); }

  TensorMessage Message() {
    TensorMessage message{.fence = pipeline_.Work(1, true).fence, .micro_batch = MicroBatchId(0)};
    message.tensors.push_back(Activation(PipelineHarness::kContext, 4));
    return message;
  }
  Tensor Activation(int64_t rows, int64_t width) {
    auto tensor = MakeTensor(pipeline_.backend(0).allocator(), MemoryKind::kActivations,
                             DType::kF32, Shape{rows, width});
    CHECK_OK(tensor.status());
    pipeline_.backend(0).Fill(*tensor, 0.5f);
    return *tensor;
  }
  absl::Status Deliver(TensorMessage message) {
    CHECK(pipeline_.downstream(0)->TrySend(std::move(message)));
    return pipeline_.executor(1).Advance(1).status();
  }

  PipelineHarness pipeline_{{.stages = 2, .batch_size = 2, .micro_batches = 2}};
};

TEST_F(ForeignMessage, OfThisStepIsTaken) {
  EXPECT_TRUE(Deliver(Message()).ok());
  EXPECT_EQ(pipeline_.executor(1).instructions_done(), 1u);
}

TEST_F(ForeignMessage, OfTheStepBeforeAnEarlierAttemptOrIncarnationIsDroppedAndCounted) {
  TensorMessage step = Message(), generation = Message(), term = Message();
  step.fence.step = 16;
  step.fence.attempt = 9;
  generation.fence.generation = 0;
  generation.fence.step = 99;
  term.fence.term = 0;
  EXPECT_TRUE(Deliver(std::move(step)).ok());
  EXPECT_TRUE(Deliver(std::move(generation)).ok());
  EXPECT_TRUE(Deliver(std::move(term)).ok());
  EXPECT_EQ(pipeline_.executor(1).stale_messages(), 3u);
  EXPECT_EQ(pipeline_.executor(1).instructions_done(), 0u);
  EXPECT_TRUE(Deliver(Message()).ok());
  EXPECT_EQ(pipeline_.executor(1).instructions_done(), 1u);
}

TEST_F(ForeignMessage, OfALaterStepIsAnError) {
  TensorMessage message = Message();
  message.fence.step = 18;
  const absl::Status status = Deliver(std::move(message));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(status), HasSubstr("step 18"));
  EXPECT_THAT(Text(status), HasSubstr("step 17"));
}

TEST_F(ForeignMessage, OfAnotherJobIsAnError) {
  TensorMessage message = Message();
  message.fence.job = "b";
  message.fence.term = 0;
  EXPECT_EQ(Deliver(std::move(message)).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ForeignMessage, OfAnotherMicroBatchIsAnErrorNamingBoth) {
  TensorMessage message = Message();
  message.micro_batch = MicroBatchId(1);
  const absl::Status status = Deliver(std::move(message));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(status), HasSubstr("activation of micro-batch 1 arrived"));
  EXPECT_THAT(Text(status), HasSubstr("expects activation of micro-batch 0"));
}

TEST_F(ForeignMessage, OfAnotherShapeIsAnErrorAndNotACrash) {
  TensorMessage rows = Message();
  rows.tensors = {Activation(PipelineHarness::kContext + 1, 4)};
  EXPECT_THAT(Text(Deliver(std::move(rows))),
              HasSubstr("[4, 4], expected F32[3, 4] for each sample"));
  TensorMessage width = Message();
  width.tensors = {Activation(PipelineHarness::kContext, 5)};
  EXPECT_EQ(Deliver(std::move(width)).code(), absl::StatusCode::kFailedPrecondition);
  TensorMessage nothing = Message();
  nothing.tensors.clear();
  EXPECT_EQ(Deliver(std::move(nothing)).code(), absl::StatusCode::kFailedPrecondition);
}

// A stage that runs the job in another precision.
TEST_F(ForeignMessage, OfAnotherTypeIsAnErrorNamingBothTypes) {
  TensorMessage message = Message();
  const Tensor activation = message.tensors[0];
  auto narrow = MakeTensor(pipeline_.backend(0).allocator(), MemoryKind::kActivations, DType::kBF16,
                           activation.shape());
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  pipeline_.backend(0).Convert(activation, *narrow);
  message.tensors = {*narrow};
  const absl::Status status = Deliver(std::move(message));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(status), HasSubstr("is BF16[3, 4], expected F32[3, 4] for each sample"));
  EXPECT_THAT(Text(status), HasSubstr("both stages must run the same job spec"));
}

TEST(Executor, BoundaryTensorsOfABfloat16JobAreBfloat16) {
  PipelineHarness pipeline(
      {.stages = 2, .batch_size = 1, .micro_batches = 1, .precision = Precision::kBfloat16});
  pipeline.executor(0).BeginStep(pipeline.Work(0, true));
  ASSERT_TRUE(pipeline.executor(0).Advance().ok());
  const std::optional<TensorMessage> message = pipeline.upstream(1)->TryReceive();
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->tensors[0].dtype(), DType::kBF16);
  EXPECT_EQ(message->tensors[0].bytes(), 2 * PipelineHarness::kContext * 4);
  pipeline.executor(0).Abandon();
}

TEST_F(ForeignMessage, WithMoreSequencesThanTheTargetsIsAnErrorBeforeItIsComputedOn) {
  TensorMessage message = Message();
  message.tensors = {Activation(2 * PipelineHarness::kContext, 4)};
  EXPECT_TRUE(Deliver(std::move(message)).ok());
  TensorMessage second = Message();
  second.micro_batch = MicroBatchId(1);
  CHECK(pipeline_.downstream(0)->TrySend(std::move(second)));
  const absl::Status status = pipeline_.executor(1).Advance().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(status), HasSubstr("2 samples arrived"));
}

TEST(Executor, ABrokenLinkEndsTheStepWhicheverSideItIsOn) {
  PipelineHarness pipeline({.stages = 3, .batch_size = 2, .micro_batches = 2});
  StageExecutor& stage = pipeline.executor(1);
  stage.BeginStep(pipeline.Work(1, true));
  ASSERT_TRUE(stage.Advance().ok());
  pipeline.upstream(2)->Close(absl::InternalError("stage 2 died"));
  const auto progress = stage.Advance();  // it waits for stage 0, and stage 2 is gone
  EXPECT_EQ(progress.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Text(progress.status()), HasSubstr("link to stage 2"));
  EXPECT_THAT(Text(progress.status()), HasSubstr("stage 2 died"));
  EXPECT_THAT(Text(progress.status()), HasSubstr("stage 1, micro-batch 0, job a"));
  stage.Abandon();
}

// Protects metric stage_time_seconds_total: every second is in one phase, and waiting is split
// where the neighbour sent.
TEST(Executor, SplitsAWaitAtTheNeighboursSendTime) {
  ManualClock clock(1'000);
  PipelineHarness pipeline({.stages = 2, .batch_size = 1, .micro_batches = 1}, &clock);
  StageExecutor& stage = pipeline.executor(1);
  stage.BeginStep(pipeline.Work(1, true));
  ASSERT_TRUE(stage.Advance().ok());
  EXPECT_EQ(pipeline.phases(1).current(), Phase::kBubble);
  clock.AdvanceNanos(700);
  pipeline.executor(0).BeginStep(pipeline.Work(0, true));
  ASSERT_TRUE(pipeline.executor(0).Advance().ok());  // sends at 1700
  clock.AdvanceNanos(50);                            // on its way
  const auto progress = stage.Advance();
  ASSERT_TRUE(progress.ok()) << progress.status();
  EXPECT_EQ(*progress, Progress::kFinished);
  const auto nanos = pipeline.phases(1).TotalNanos();
  EXPECT_EQ(nanos[static_cast<int>(Phase::kBubble)], 700);
  EXPECT_EQ(nanos[static_cast<int>(Phase::kReceiveWait)], 50);
  EXPECT_EQ(std::accumulate(nanos.begin(), nanos.end(), int64_t{0}), 750);
  const StepReport report = stage.TakeReport();
  EXPECT_EQ(report.step_seconds, 750e-9);
  pipeline.executor(0).Abandon();
}

TEST(Executor, RunsAsManyInstructionsAsAsked) {
  PipelineHarness pipeline({.stages = 1, .batch_size = 2, .micro_batches = 2});
  StageExecutor& stage = pipeline.executor(0);
  stage.BeginStep(pipeline.Work(0, true));
  for (uint64_t i = 1;; ++i) {
    const auto progress = stage.Advance(1);
    ASSERT_TRUE(progress.ok());
    ASSERT_EQ(stage.instructions_done(), i);
    if (*progress == Progress::kFinished) break;
    ASSERT_EQ(*progress, Progress::kAdvanced);
  }
  EXPECT_TRUE(stage.TakeReport().has_loss);
}

}  // namespace
}  // namespace stagecoach
