// A head that goes by chunks with the loss: what it computes is what a whole one does, and it has
// the same bits for every cut, schedule and mode. On a made-up card over the reference back end.
#include "stage/cell/chunked_head.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "base/threads/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/embedding.h"
#include "network/layers/flatten.h"
#include "network/layers/linear.h"
#include "network/layers/residual.h"
#include "network/network_kinds.h"
#include "network/objectives/cross_entropy.h"
#include "network/passes/freeze.h"
#include "network/passes/head_chunks.h"
#include "network/zoo/gpt.h"
#include "network/zoo/sequence.h"
#include "plan/data/text.h"
#include "plan/learning_rates/constant.h"
#include "plan/schedules/schedule_kinds.h"
#include "stage/cell/layer_profile.h"
#include "stage/executor/shown_answers.h"
#include "stage/testing/pipeline_harness.h"
#include "stage/testing/staged_backend.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

constexpr int64_t kChunkContext = 3;
// Micro-batches of 2, 2 and 1 samples have 6, 6 and 3 rows: chunks of 4 and 2, 4 and 2, and 3.
constexpr HeadChunkLimits kFourRows{.bytes = 0, .least_rows = 4};
constexpr HeadChunkLimits kOneChunk{.bytes = int64_t{1} << 40};

Network ChunkGpt(bool tied, Precision precision = Precision::kFloat32, double dropout = 0.2) {
  return *ExpandNetwork(GptSpec{.layers = 1,
                                .width = 8,
                                .heads = 2,
                                .context = kChunkContext,
                                .vocabulary = 17,
                                .dropout = dropout,
                                .tied_embeddings = tied},
                        precision);
}

HarnessOptions ChunkOptions(const Network& network, int stages = 1) {
  HarnessOptions options{.stages = stages, .batch_size = 5, .micro_batches = 3};
  options.precision = network.precision;
  options.network = network;
  options.clip_norm = 0.5;
  options.evaluation_sequences = 5;
  return options;
}

HarnessOptions InChunks(HarnessOptions options, const HeadChunkLimits& limits) {
  options.patience = 1000;
  options.make_backend = [limits] {
    auto backend = std::make_unique<StagedBackend>();
    backend->CutHeads(limits);
    return backend;
  };
  return options;
}

HarnessResult TrainHead(const HarnessOptions& options, int steps = 3) {
  auto result = PipelineHarness(options).Train(steps);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : HarnessResult{};
}

// Chunks round the gradient of the head's weight once more each, and nothing else.
void ExpectNearWhole(const HarnessResult& is, const HarnessResult& expected, double tolerance) {
  ASSERT_EQ(is.losses.size(), expected.losses.size());
  for (size_t step = 0; step < expected.losses.size(); ++step) {
    EXPECT_NEAR(is.losses[step], expected.losses[step], tolerance * expected.losses[step]);
    EXPECT_NEAR(is.squared_norms[step], expected.squared_norms[step],
                tolerance * expected.squared_norms[step]);
  }
  EXPECT_EQ(is.state.size(), expected.state.size());
}

TEST(ChunkedHead, HasOneChunkTheBitsOfAWholeHead) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    for (const bool tied : {false, true}) {
      const HarnessOptions options = ChunkOptions(ChunkGpt(tied, precision));
      EXPECT_TRUE(TrainHead(InChunks(options, kOneChunk)) == TrainHead(options)) << tied;
    }
  }
}

TEST(ChunkedHead, LearnsWhatAWholeHeadLearns) {
  for (const bool tied : {false, true}) {
    const HarnessOptions options = ChunkOptions(ChunkGpt(tied));
    const HarnessResult chunked = TrainHead(InChunks(options, kFourRows)),
                        whole = TrainHead(options);
    ExpectNearWhole(chunked, whole, 1e-6);
    EXPECT_DOUBLE_EQ(chunked.losses.front(), whole.losses.front()) << "every row by itself";
    EXPECT_FALSE(chunked == whole) << "sums were rounded once more";
    const HarnessOptions rounded = ChunkOptions(ChunkGpt(tied, Precision::kBfloat16));
    ExpectNearWhole(TrainHead(InChunks(rounded, kFourRows)), TrainHead(rounded), 1e-3);
  }
}

void ExpectSameBitsInChunks(const Network& network) {
  const HarnessResult truth = TrainHead(InChunks(ChunkOptions(network), kFourRows));
  const int layers = static_cast<int>(network.layers.size());
  for (int stages = 1; stages <= layers; stages += kSanitized ? 2 : 1) {
    for (const std::string& schedule : SchedulesFor(network.layers.size(), stages)) {
      for (const auto mode : {Rematerialization::kAlways, Rematerialization::kExceptFirst,
                              Rematerialization::kNever}) {
        HarnessOptions options = ChunkOptions(network, stages);
        options.schedule = schedule;
        options.rematerialization = mode;
        EXPECT_TRUE(TrainHead(InChunks(options, kFourRows)) == truth)
            << stages << " stages, " << schedule << ", " << RematerializationName(mode);
      }
    }
  }
}

TEST(ChunkedHead, HasTheSameBitsInEveryPipeline) {
  ExpectSameBitsInChunks(ChunkGpt(false));
  ExpectSameBitsInChunks(ChunkGpt(true));
}

TEST(ChunkedHead, HasTheSameBitsInEveryPipelineInBfloat16) {
  ExpectSameBitsInChunks(ChunkGpt(false, Precision::kBfloat16));
  ExpectSameBitsInChunks(ChunkGpt(true, Precision::kBfloat16));
}

// What the head reads is kept by the layer in front too.
TEST(ChunkedHead, HasTheSameBitsInEveryPipelineBehindARelu) {
  const LayerSpec wide = LinearSpec{.out = 8};
  const Network network = *ExpandNetwork(
      SequenceSpec{.width = 8,
                   .context = kChunkContext,
                   .vocabulary = 17,
                   .layers = {EmbeddingSpec{}, ResidualSpec{{wide, ReluSpec{}, wide}}, wide,
                              ReluSpec{}, LinearSpec{.out = 17, .bias = false}}});
  ASSERT_TRUE(HeadGoesByChunks(network));
  ExpectNearWhole(TrainHead(InChunks(ChunkOptions(network), kFourRows)),
                  TrainHead(ChunkOptions(network)), 1e-6);
  ExpectSameBitsInChunks(network);
}

TEST(ChunkedHead, MayBeFrozenOrTheOnlyOneThatIsNot) {
  const Network gpt = ChunkGpt(false);
  const std::vector<std::vector<std::string>> patterns = {
      {"model/0004/*"}, {"model/0000/*", "model/0001/*", "model/0002/*", "model/0003/*"}};
  for (const std::vector<std::string>& frozen : patterns) {
    SCOPED_TRACE(frozen.front());
    const Network network = *Freeze(gpt, frozen, "training.freeze");
    ASSERT_TRUE(HeadGoesByChunks(network));
    ExpectNearWhole(TrainHead(InChunks(ChunkOptions(network), kFourRows)),
                    TrainHead(ChunkOptions(network)), 1e-6);
    ExpectSameBitsInChunks(network);
  }
}

TEST(ChunkedHead, CountsTermsAndMeasuresAsAWholeHeadDoes) {
  NetworkSpec spec = SequenceSpec{.width = 4,
                                  .context = kChunkContext,
                                  .vocabulary = 5,
                                  .layers = {EmbeddingSpec{}, LinearSpec{.out = 5, .bias = false}}};
  spec.objective = CrossEntropySpec{.label_smoothing = 0.1, .ignore_index = 2, .top = 2};
  const Network smooth = *ExpandNetwork(spec);
  spec.objective = CrossEntropySpec{.class_weights = {0.5, 2, 0, 1, 3}, .per_class = true};
  const Network weighted = *ExpandNetwork(spec);
  for (const Network& network : {smooth, weighted}) {
    ASSERT_TRUE(HeadGoesByChunks(network));
    PipelineHarness whole(ChunkOptions(network)),
        chunked(InChunks(ChunkOptions(network, 2), kFourRows));
    for (const bool training : {true, false}) {
      const auto expected = whole.RunPass(training, 0), is = chunked.RunPass(training, 0);
      ASSERT_TRUE(expected.ok() && is.ok()) << expected.status() << is.status();
      const StepReport &want = expected->back(), &got = is->back();
      EXPECT_NEAR(got.loss_sum, want.loss_sum, 1e-12 * want.loss_sum);
      EXPECT_NEAR(got.terms, want.terms, 1e-12 * want.terms);
      EXPECT_EQ(got.targets, want.targets);
      ASSERT_EQ(got.measures.size(), want.measures.size());
      for (size_t i = 0; i < want.measures.size(); ++i) {
        EXPECT_EQ(got.measures[i].name, want.measures[i].name);
        EXPECT_DOUBLE_EQ(got.measures[i].value, want.measures[i].value);
      }
      ASSERT_EQ(got.class_counts.size(), want.class_counts.size());
      for (size_t i = 0; i < want.class_counts.size(); ++i) {
        EXPECT_EQ(got.class_counts[i], want.class_counts[i]) << i;
      }
    }
    ExpectNearWhole(TrainHead(InChunks(ChunkOptions(network), kFourRows)),
                    TrainHead(ChunkOptions(network)), 1e-6);
  }
}

// Nobody ever sees more rows than a chunk has, in training and in an evaluation.
TEST(ChunkedHead, MakesNoMoreLogitsAtOnceThanAChunkHas) {
  std::vector<int64_t> rows;
  HarnessOptions options = InChunks(ChunkOptions(ChunkGpt(false)), kFourRows);
  options.on_output = [&rows](MicroBatchId, const Tensor& logits) {
    rows.push_back(logits.shape()[0]);
  };
  PipelineHarness pipeline(options);
  ASSERT_TRUE(pipeline.TrainStep().ok());
  EXPECT_THAT(rows, ElementsAre(4, 2, 4, 2, 3));
  rows.clear();
  ASSERT_TRUE(pipeline.Evaluate(0).ok());
  EXPECT_THAT(rows, ElementsAre(4, 2, 4, 2, 3));
}

// The first losses have added to the gradient of the head when the step is given up.
TEST(ChunkedHead, LeavesNothingBehindAStepThatWasGivenUp) {
  for (const std::string schedule : {"gpipe", "zero_bubble"}) {
    HarnessOptions options = InChunks(ChunkOptions(ChunkGpt(true)), kFourRows);
    options.schedule = schedule;
    const HarnessResult truth = TrainHead(options);
    PipelineHarness pipeline(options);
    const StageProgram& program = pipeline.programs(true)[0];
    for (size_t stop = 1; stop < program.instructions.size(); ++stop) {
      if (program.instructions[stop - 1].op != Opcode::kLoss) continue;
      pipeline.executor(0).BeginStep(pipeline.Work(0, true));
      ASSERT_TRUE(pipeline.executor(0).Advance(static_cast<int>(stop)).ok());
      pipeline.executor(0).Abandon();
      pipeline.cell(0).ZeroGradients();
    }
    const auto again = pipeline.Train(3);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(*again == truth) << schedule;
  }
}

TEST(ChunkedHead, ShowsTheAnswersOfTheFirstImages) {
  const Network network = *ExpandNetwork(SequenceSpec{
      .layers = {FlattenSpec{}, LinearSpec{.out = 3}, LinearSpec{.out = 4, .bias = false}},
      .image = {2, 2, 1},
      .classes = 4});
  ASSERT_TRUE(HeadGoesByChunks(network));
  const auto answers = [&network](const HeadChunkLimits& limits) {
    PipelineHarness pipeline(InChunks(ChunkOptions(network), limits));
    StepWork work = pipeline.Work(0, false);
    std::vector<ShownAnswer> shown;
    work.observer = GatherAnswers(4, pipeline.backend(0), &shown);
    pipeline.executor(0).BeginStep(work);
    EXPECT_TRUE(pipeline.executor(0).Advance(1000).ok());
    return shown;
  };
  const std::vector<ShownAnswer> whole = answers(kOneChunk), chunked = answers({.least_rows = 1});
  ASSERT_EQ(whole.size(), 4u);
  ASSERT_EQ(chunked.size(), 4u);
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(chunked[i].answer, whole[i].answer);
    EXPECT_EQ(chunked[i].label, whole[i].label);
    EXPECT_EQ(chunked[i].probability, whole[i].probability);
  }
}

// A second goes by whenever somebody looks.
class WatchedClock final : public Clock {
 public:
  int64_t MonotonicNanos() const override { return ++looks_ * 1'000'000'000; }
  int64_t UnixNanos() const override { return 0; }

 private:
  mutable int64_t looks_ = 0;
};

// Two samples of 16 rows are eight chunks of 4; all logits at once would have 64 KiB.
TEST(ChunkedHead, IsProfiledByOneChunk) {
  const Network network = *ExpandNetwork(
      GptSpec{.layers = 1, .width = 4, .heads = 2, .context = 16, .vocabulary = 512});
  JobSpec spec;
  spec.name = "profiled";
  spec.data = TextData{.path = "/text"};
  spec.training = {.steps = 1, .batch_size = 4, .micro_batches = 2};
  spec.training.learning_rate = ConstantRate{.peak = 0.1};
  spec.pipeline.stages = 1;
  StagedBackend backend;
  backend.CutHeads(kFourRows);
  backend.allocator().ResetPeak();
  const auto profile = ProfileLayers(spec, network, backend, WatchedClock(), [] { return false; });
  ASSERT_TRUE(profile.ok()) << profile.status();
  ASSERT_EQ(profile->size(), network.layers.size());
  EXPECT_DOUBLE_EQ((*profile)[3].forward_seconds, 1) << "the norm in front of it";
  EXPECT_DOUBLE_EQ(profile->back().forward_seconds, 8);
  EXPECT_DOUBLE_EQ(profile->back().backward_seconds, 8);
  const MemoryUse use = backend.allocator().Use();
  EXPECT_LT(use.peak[static_cast<int>(MemoryKind::kActivations)], 32 * 1024);
}

// The table of sums was made for the parts of the first micro-batch.
TEST(ChunkedHead, RefusesMoreRowsThanTheFirstMicroBatchHas) {
  PipelineHarness pipeline(InChunks(ChunkOptions(ChunkGpt(false)), kFourRows));
  ObjectiveRunner& objective = *pipeline.cell(0).objective();
  Backend& backend = pipeline.backend(0);
  objective.Begin(2, 1.0);
  const auto tensor = [&backend](DType dtype, Shape shape) {
    Tensor made = *MakeTensor(backend.allocator(), MemoryKind::kActivations, dtype, shape);
    std::memset(made.raw(), 0, static_cast<size_t>(made.bytes()));
    return made;
  };
  const auto evaluate = [&](int micro_batch, ObjectiveRunner::Part part) {
    return objective.Evaluate({.micro_batch = MicroBatchId(micro_batch), .sequences = 1},
                              tensor(DType::kF32, {1, 17}), {tensor(DType::kI32, {1}), {}}, part);
  };
  ASSERT_TRUE(evaluate(0, {0, 2}).ok());
  ASSERT_TRUE(evaluate(0, {1, 2}).ok());
  ASSERT_TRUE(evaluate(1, {0, 1}).ok()) << "fewer are nothing special";
  EXPECT_EQ(evaluate(1, {0, 3}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NEAR(objective.TakeSums().named[0], 3 * std::log(17.0), 1e-6);
}

}  // namespace
}  // namespace stagecoach
