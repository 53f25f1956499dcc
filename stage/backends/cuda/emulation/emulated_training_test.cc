// Whole training steps on the kernels' own source: layers, optimizer and pipeline over the back
// end.
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "plan/schedules/schedule_kinds.h"
#include "stage/backends/cuda/emulation/emulated_backend.h"
#include "stage/testing/pipeline_harness.h"

namespace stagecoach {
namespace {

HarnessOptions Options() {
  return {.gpt = {.layers = 2, .width = 12, .heads = 3, .context = 35, .vocabulary = 17},
          .batch_size = 3,
          .micro_batches = 2,
          .dropout = 0.2,
          .clip_norm = 0.5};
}

// Heads and widths of which the library's fused epilogues take some and refuse others.
HarnessOptions InBfloat16() {
  HarnessOptions options = Options();
  options.gpt.width = 24;
  options.precision = Precision::kBfloat16;
  return options;
}

HarnessResult MustTrain(const HarnessOptions& options) {
  auto result = PipelineHarness(options).Train(3);
  CHECK_OK(result.status());
  return *std::move(result);
}

TEST(EmulatedTraining, LearnsWhatTheReferenceLearns) {
  HarnessOptions options = Options();
  const HarnessResult reference = MustTrain(options);
  options.make_backend = [] { return cuda::MakeEmulatedBackend({}); };
  const HarnessResult emulated = MustTrain(options);
  ASSERT_EQ(emulated.losses.size(), reference.losses.size());
  for (size_t step = 0; step < reference.losses.size(); ++step) {
    EXPECT_NEAR(emulated.losses[step], reference.losses[step], 1e-5 * reference.losses[step]);
    EXPECT_NEAR(emulated.squared_norms[step], reference.squared_norms[step],
                1e-4 * reference.squared_norms[step]);
  }
}

// A vocabulary of 17 is no multiple of what matrix units like, so logits have padded rows: in
// training each of the head's products, forward and both of its gradients, and none in an
// evaluation.
TEST(EmulatedTraining, LogitsOfAnOddVocabularyHavePaddedRows) {
  HarnessOptions options = InBfloat16();
  options.make_backend = [] { return cuda::MakeEmulatedBackend({}); };
  options.evaluation_sequences = 3;
  const int64_t before = cuda::EmulatedBackend::strided_products;
  PipelineHarness harness(options);
  ASSERT_TRUE(harness.Train(3).ok());
  ASSERT_TRUE(harness.Evaluate(0).ok());
  EXPECT_EQ(cuda::EmulatedBackend::strided_products - before, 3 * 2 * 3) << "steps, micro-batches";
  options.gpt.vocabulary = 24;
  MustTrain(options);
  EXPECT_EQ(cuda::EmulatedBackend::strided_products - before, 3 * 2 * 3) << "24 need none";
}

TEST(EmulatedTraining, HasTheSameBitsForEveryNumberOfStages) {
  HarnessOptions options = Options();
  options.make_backend = [] { return cuda::MakeEmulatedBackend({}); };
  const HarnessResult truth = MustTrain(options);
  for (const int stages : {2, 4}) {
    options.stages = stages;
    EXPECT_TRUE(MustTrain(options) == truth) << stages;
  }
}

// A split backward computes a norm's gradients in two calls, a joint one in one.
TEST(EmulatedTraining, HasTheSameBitsWithASplitBackward) {
  for (HarnessOptions options : {Options(), InBfloat16()}) {
    options.make_backend = [] { return cuda::MakeEmulatedBackend({}); };
    const HarnessResult joint = MustTrain(options);
    options.stages = 2;
    options.schedule = "zero_bubble";
    EXPECT_TRUE(MustTrain(options) == joint) << PrecisionName(options.precision);
  }
}

TEST(EmulatedTraining, LearnsInBfloat16WhatTheReferenceLearns) {
  HarnessOptions options = InBfloat16();
  options.precision = Precision::kFloat32;
  const HarnessResult exact = MustTrain(options);
  options.precision = Precision::kBfloat16;
  const HarnessResult reference = MustTrain(options);
  for (const bool fuse : {true, false}) {
    options.make_backend = [fuse] {
      return std::make_unique<cuda::EmulatedBackend>(BackendOptions{}, fuse);
    };
    const HarnessResult emulated = MustTrain(options);
    ASSERT_EQ(emulated.losses.size(), reference.losses.size());
    for (size_t step = 0; step < reference.losses.size(); ++step) {
      EXPECT_NE(emulated.losses[step], exact.losses[step]) << "step " << step;
      EXPECT_NEAR(emulated.losses[step], reference.losses[step], 5e-3 * reference.losses[step]);
      EXPECT_NEAR(emulated.squared_norms[step], reference.squared_norms[step],
                  5e-2 * reference.squared_norms[step]);
    }
  }
}

TEST(EmulatedTraining, InBfloat16HasTheSameBitsForEveryNumberOfStages) {
  HarnessOptions options = InBfloat16();
  options.make_backend = [] { return cuda::MakeEmulatedBackend({}); };
  const HarnessResult truth = MustTrain(options);
  for (const int stages : {2, 4}) {
    options.stages = stages;
    EXPECT_TRUE(MustTrain(options) == truth) << stages;
  }
}

// Chunks of 16 rows: micro-batches of 2 and 1 sequences of 35 tokens have 5 and 3, of 16 and of 6
// and 3 rows.
HarnessOptions InChunks(HarnessOptions options) {
  options.gpt.vocabulary = 33;
  options.make_backend = [] {
    constexpr HeadChunkLimits kSixteenRows{.bytes = 0, .least_rows = 16};
    return std::make_unique<cuda::EmulatedBackend>(BackendOptions{}, true, kSixteenRows);
  };
  return options;
}

TEST(EmulatedTraining, InChunksOfTheHeadLearnsWhatAWholeOneLearns) {
  for (const HarnessOptions& options : {Options(), InBfloat16()}) {
    const bool exact = options.precision == Precision::kFloat32;
    const int64_t before = cuda::EmulatedBackend::strided_products;
    const HarnessResult chunked = MustTrain(InChunks(options));
    EXPECT_EQ(cuda::EmulatedBackend::strided_products - before, 3 * (5 + 3) * 3)
        << "steps, chunks, products";
    HarnessOptions whole = options;
    whole.gpt.vocabulary = 33;
    const HarnessResult reference = MustTrain(whole);
    for (size_t step = 0; step < reference.losses.size(); ++step) {
      EXPECT_NEAR(chunked.losses[step], reference.losses[step],
                  (exact ? 1e-5 : 5e-3) * reference.losses[step]);
      EXPECT_NEAR(chunked.squared_norms[step], reference.squared_norms[step],
                  (exact ? 1e-4 : 5e-2) * reference.squared_norms[step]);
    }
  }
}

TEST(EmulatedTraining, InChunksOfTheHeadHasTheSameBitsForEveryNumberOfStages) {
  for (HarnessOptions options : {Options(), InBfloat16()}) {
    const HarnessResult truth = MustTrain(InChunks(options));
    options.stages = 2;
    for (const std::string& schedule : ScheduleNames()) {
      options.schedule = schedule;
      const bool several = CellsPerStageOf(schedule, 0) > 1;
      if (several) options.stages = 2;
      EXPECT_TRUE(MustTrain(InChunks(options)) == truth) << options.stages << ", " << schedule;
      options.stages = options.stages == 2 && !several ? 7 : 2;
    }
  }
}

}  // namespace
}  // namespace stagecoach
