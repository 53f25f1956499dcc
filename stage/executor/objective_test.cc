// What the last stage runs of a micro-batch: the gradient is that of the mini-batch for every M,
// also where targets are ignored, and measures come with the loss.
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/convolution.h"
#include "network/network_kinds.h"
#include "network/objectives/cross_entropy.h"
#include "network/objectives/mean_squared_error.h"
#include "network/zoo/sequence.h"
#include "stage/testing/pipeline_harness.h"
#include "stage/testing/skip_network.h"

namespace stagecoach {
namespace {

constexpr int64_t kSequences = 5;

HarnessOptions Ignoring(int64_t micro_batches, const CrossEntropySpec& objective) {
  HarnessOptions options{.batch_size = kSequences, .micro_batches = micro_batches};
  options.network = MakeSkipNetwork(false, Precision::kFloat32, objective);
  options.evaluation_sequences = kSequences;
  return options;
}

// Of a step: the last stage's report, and the squared gradient norms of all layers.
struct Step {
  StepReport report;
  std::vector<double> norms;
};
Step FirstStep(const HarnessOptions& options) {
  PipelineHarness pipeline(options);
  auto reports = pipeline.RunPass(true, 0);
  EXPECT_TRUE(reports.ok()) << reports.status();
  if (!reports.ok()) return {};
  return {reports->back(), reports->back().layer_squared_norms};
}

TEST(ObjectiveTest, IgnoredTargetsLeaveTheGradientThatOfTheMiniBatchForEveryM) {
  const CrossEntropySpec objective{.ignore_index = 1};
  const Step whole = FirstStep(Ignoring(1, objective));
  const double all = kSequences * kSkipContext;
  EXPECT_EQ(whole.report.targets, all);
  ASSERT_GT(whole.report.terms, 0);
  ASSERT_LT(whole.report.terms, all) << "none is ignored";
  for (const int64_t micro_batches : {2, 3, 4, 5}) {
    const Step cut = FirstStep(Ignoring(micro_batches, objective));
    EXPECT_EQ(cut.report.terms, whole.report.terms);
    EXPECT_NEAR(cut.report.loss_sum, whole.report.loss_sum, 1e-5 * whole.report.loss_sum);
    ASSERT_EQ(cut.norms.size(), whole.norms.size());
    for (size_t i = 0; i < cut.norms.size(); ++i) {
      EXPECT_NEAR(cut.norms[i], whole.norms[i], 1e-5 * whole.norms[i])
          << "layer " << i << ", M = " << micro_batches;
    }
  }
}

// The logits' gradient is a mean over the terms, so leaving targets out makes those that are left
// count for more.
TEST(ObjectiveTest, TheGradientIsOfTheMeanOverWhatCounts) {
  HarnessOptions options = Ignoring(2, {.ignore_index = 1});
  const Step counted = FirstStep(options);
  options.network->objective.ignored.reset();  // the loss leaves them out, and nobody counts
  const Step uncounted = FirstStep(options);
  const double more = kSequences * kSkipContext / counted.report.terms;
  ASSERT_GT(more, 1);
  for (size_t i = 0; i < counted.norms.size(); ++i) {
    const double expected = uncounted.norms[i] * more * more;
    EXPECT_NEAR(counted.norms[i], expected, 1e-5 * expected) << "layer " << i;
  }
}

// An autoencoder: what comes out is compared with what went in, in float32 in every precision.
TEST(ObjectiveTest, ImagesAreComparedWithThoseThatWentIn) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    NetworkSpec spec =
        SequenceSpec{.layers = {ConvolutionSpec{.out = 4, .kernel = {3}, .padding = {1}},
                                ReluSpec{}, ConvolutionSpec{.out = 2, .kernel = {1}}},
                     .image = {4, 3, 2},
                     .classes = 2};
    spec.objective = MeanSquaredErrorSpec{};
    const auto network = ExpandNetwork(spec, precision);
    ASSERT_TRUE(network.ok()) << network.status();
    std::vector<HarnessResult> results;
    for (const int stages : {1, 2, 3}) {
      HarnessOptions options{.stages = stages, .batch_size = kSequences, .micro_batches = 2};
      options.precision = precision;
      options.network = *network;
      options.evaluation_sequences = 3;
      PipelineHarness pipeline(options);
      const auto result = pipeline.Train(3);
      ASSERT_TRUE(result.ok()) << result.status();
      results.push_back(*result);
      const auto evaluation = pipeline.Evaluate(0);
      ASSERT_TRUE(evaluation.ok()) << evaluation.status();
      EXPECT_EQ(evaluation->terms, 3 * 4 * 3 * 2) << "numbers of the images";
      EXPECT_GT(evaluation->loss_sum, 0);
    }
    EXPECT_GT(results[0].losses[0], results[0].losses[2]);
    EXPECT_TRUE(results[1] == results[0] && results[2] == results[0]);
  }
}

TEST(ObjectiveTest, AMiniBatchInWhichNothingCountsHasNoGradient) {
  const CrossEntropySpec objective{.ignore_index = 0};
  HarnessOptions options = Ignoring(2, objective);
  // So all targets are 0.
  options.draws_below = 1;
  const Step none = FirstStep(options);
  EXPECT_EQ(none.report.terms, 0);
  EXPECT_EQ(none.report.loss_sum, 0);
  for (const double norm : none.norms) EXPECT_EQ(norm, 0);
}

// Classes are counted one by one, so counts are the same for every K and every M. A mini-batch of
// which the last micro-batches are empty counts as well.
TEST(ObjectiveTest, CountsOfClassesAreTheSameForEveryPipeline) {
  const CrossEntropySpec objective{.ignore_index = 1, .mean_iou = true, .per_class = true};
  HarnessOptions whole = Ignoring(1, objective);
  whole.evaluation_sequences = kSequences - 2;
  std::vector<std::vector<ClassCounts>> seen[2];
  for (const int stages : {1, 2, 3}) {
    for (const int64_t micro_batches : {1, 2, 5}) {
      HarnessOptions options = whole;
      options.stages = stages;
      options.micro_batches = micro_batches;
      PipelineHarness pipeline(options);
      auto reports = pipeline.RunPass(true, 0);
      ASSERT_TRUE(reports.ok()) << reports.status();
      auto evaluation = pipeline.Evaluate(0);
      ASSERT_TRUE(evaluation.ok()) << evaluation.status();
      seen[0].push_back(reports->back().class_counts);
      seen[1].push_back(evaluation->class_counts);
      for (const StepReport* report : {&reports->back(), &*evaluation}) {
        ClassCounts all;
        for (const ClassCounts& counts : report->class_counts) {
          all.right += counts.right;
          all.targets += counts.targets;
          all.guesses += counts.guesses;
        }
        EXPECT_EQ(report->class_counts.size(), size_t{kSkipVocabulary});
        EXPECT_EQ(all.targets, report->terms);
        EXPECT_EQ(all.guesses, report->terms);
        EXPECT_EQ(all.right, report->measures[0].value) << "accuracy";
      }
    }
  }
  for (const auto& counts : seen) {
    for (const auto& one : counts) EXPECT_EQ(one, counts[0]);
  }
}

TEST(ObjectiveTest, ClassesAloneAreCountedInEvaluationsAlone) {
  PipelineHarness pipeline(Ignoring(2, {.per_class = true}));
  auto reports = pipeline.RunPass(true, 0);
  ASSERT_TRUE(reports.ok()) << reports.status();
  EXPECT_TRUE(reports->back().class_counts.empty());
  auto evaluation = pipeline.Evaluate(0);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(evaluation->class_counts.size(), size_t{kSkipVocabulary});
}

TEST(ObjectiveTest, MeasuresComeWithTheLossInTrainingAndEvaluation) {
  const HarnessOptions options = Ignoring(3, {.top = 2});
  PipelineHarness pipeline(options);
  auto reports = pipeline.RunPass(true, 0);
  ASSERT_TRUE(reports.ok()) << reports.status();
  auto evaluation = pipeline.Evaluate(0);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  for (const StepReport* report : {&reports->back(), &*evaluation}) {
    ASSERT_EQ(report->measures.size(), 2u);
    EXPECT_EQ(report->measures[0].name, "accuracy");
    EXPECT_EQ(report->measures[1].name, "top_2");
    EXPECT_GE(report->measures[0].value, 0);
    EXPECT_GT(report->measures[1].value, 0) << "2 of few classes";
    EXPECT_LE(report->measures[0].value, report->measures[1].value);
    EXPECT_LE(report->measures[1].value, report->terms);
  }
}

}  // namespace
}  // namespace stagecoach
