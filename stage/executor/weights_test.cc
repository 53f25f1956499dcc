// Targets with weights: the gradient is that of the weighted mean over the mini-batch, for every M
// and K.
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/numbers/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/objectives/cross_entropy.h"
#include "network/objectives/mean_squared_error.h"
#include "stage/executor/target_weights.h"
#include "stage/testing/pipeline_harness.h"
#include "stage/testing/skip_network.h"
#include "stage/testing/weighted_images.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

const std::vector<float> kSampleWeights = {0.5, 2, 0, 1, 3.25};

// As many as there are weights.
HarnessOptions OnImages(const Network& network, int64_t micro_batches,
                        const std::vector<float>& weights = kSampleWeights) {
  HarnessOptions options{.batch_size = static_cast<int64_t>(weights.size()),
                         .micro_batches = micro_batches};
  options.network = network;
  options.precision = network.precision;
  options.source = std::make_shared<WeightedImages>(
      WeightedImages::Sizes{micro_batches, kWeightedNumbers, kWeightedClasses}, weights);
  return options;
}

struct Outcome {
  StepReport report;
  std::map<std::string, std::vector<float>> gradients;
};

Outcome GradientsOf(const HarnessOptions& options) {
  PipelineHarness pipeline(options);
  auto reports = pipeline.RunPass(true, 0);
  CHECK_OK(reports.status());
  Outcome outcome{reports->back(), {}};
  for (int k = 0; k < pipeline.stages(); ++k) {
    for (Parameter* parameter : pipeline.cell(k).parameters()) {
      std::vector<float>& values = outcome.gradients[parameter->spec.name];
      values.resize(static_cast<size_t>(parameter->gradient.elements()));
      pipeline.backend(k).CopyToHost(parameter->gradient,
                                     std::as_writable_bytes(std::span(values)));
    }
  }
  return outcome;
}

// Of each parameter, beside its largest number.
void ExpectNear(const Outcome& is, const Outcome& expected, double tolerance = 1e-5) {
  // A weight of a sample times one of a class is rounded to float32.
  EXPECT_NEAR(is.report.terms, expected.report.terms, 2e-7 * expected.report.terms);
  EXPECT_NEAR(is.report.loss_sum, expected.report.loss_sum,
              tolerance * std::abs(expected.report.loss_sum));
  ASSERT_EQ(is.gradients.size(), expected.gradients.size());
  for (const auto& [name, values] : expected.gradients) {
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    ASSERT_GT(largest, 0) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(is.gradients.at(name)[i], values[i], tolerance * largest) << name << " " << i;
    }
  }
}

const CrossEntropySpec kClassWeights{.ignore_index = 3, .top = 2, .class_weights = {0.25, 3, 0, 1}};

std::map<std::string, Network> WeightedNetworks() {
  return {{"samples", WeightedNetwork(CrossEntropySpec{.label_smoothing = 0.1}, true)},
          {"classes", WeightedNetwork(kClassWeights, false)},
          {"both", WeightedNetwork(kClassWeights, true)},
          {"numbers", WeightedNetwork(MeanSquaredErrorSpec{}, true)}};
}

TEST(Weights, LeaveTheGradientThatOfTheMiniBatchForEveryM) {
  for (const auto& [name, network] : WeightedNetworks()) {
    const Outcome whole = GradientsOf(OnImages(network, 1));
    for (const int64_t micro_batches : {2, 3, 5}) {
      SCOPED_TRACE(absl::StrCat(name, ", M = ", micro_batches));
      ExpectNear(GradientsOf(OnImages(network, micro_batches)), whole);
    }
  }
}

// The mean over the samples' own gradients, each by what it weighs. A sample's own is that of a
// mini-batch in which it alone counts.
Outcome MeanOfSamples(const Network& network, const std::vector<float>& weights) {
  Outcome mean;
  std::map<std::string, std::vector<double>> sums;
  for (size_t i = 0; i < weights.size(); ++i) {
    std::vector<float> alone(weights.size(), 0.0f);
    alone[i] = 1;
    const Outcome own = GradientsOf(OnImages(network, 1, alone));
    const double share = weights[i] * own.report.terms;
    mean.report.terms += share;
    mean.report.loss_sum += weights[i] * own.report.loss_sum;
    for (const auto& [name, values] : own.gradients) {
      sums[name].resize(values.size());
      for (size_t j = 0; j < values.size(); ++j) sums[name][j] += share * values[j];
    }
  }
  for (const auto& [name, values] : sums) {
    for (const double sum : values) {
      mean.gradients[name].push_back(static_cast<float>(sum / mean.report.terms));
    }
  }
  return mean;
}

// Three samples and more, some of weight 0; in odd rounds the others are as far apart as weights
// may be.
std::vector<float> DrawnWeights(uint32_t round) {
  std::vector<float> weights;
  for (uint32_t i = 0; i < 3 + round; ++i) {
    const uint64_t bits = RandomBits({.seed = 83, .step = round}, i);
    const double place = static_cast<double>(bits % 1000) / 500 - 1;  // -1 to 1
    const bool zero = i > 0 && bits / 1000 % 3 == 0;
    weights.push_back(
        zero ? 0.0f : static_cast<float>(std::pow(10, round % 2 == 1 ? 8.9 * place : place)));
  }
  return weights;
}

TEST(Weights, MakeTheGradientTheMeanOverSamplesByWeightForEveryM) {
  for (const auto& [name, network] : WeightedNetworks()) {
    if (!network.objective.weights.valid()) continue;
    for (uint32_t round = 0; round < 5; ++round) {
      const std::vector<float> weights = DrawnWeights(round);
      const Outcome mean = MeanOfSamples(network, weights);
      for (size_t micro_batches = 1; micro_batches <= weights.size(); ++micro_batches) {
        SCOPED_TRACE(absl::StrCat(name, ", round ", round, ", M = ", micro_batches));
        ExpectNear(GradientsOf(OnImages(network, static_cast<int64_t>(micro_batches), weights)),
                   mean);
      }
    }
  }
}

// Samples of weight 0 behind the others, whole micro-batches of them too, leave every bit as it is
// without them.
TEST(Weights, OfZeroAddNothing) {
  for (const auto& [name, network] : WeightedNetworks()) {
    if (!network.objective.weights.valid()) continue;
    const Outcome without = GradientsOf(OnImages(network, 2, {0.5, 2}));
    const Outcome with = GradientsOf(OnImages(network, 5, {0.5, 2, 0, 0, 0}));
    EXPECT_GT(without.report.loss_sum, 0) << name;
    EXPECT_EQ(with.report.terms, without.report.terms) << name;
    EXPECT_EQ(with.report.loss_sum, without.report.loss_sum) << name;
    EXPECT_EQ(with.gradients, without.gradients) << name;
  }
}

// What a sample weighs is as good as how often it is there.
TEST(Weights, OfWholeNumbersAreAsManySamples) {
  const Network network = WeightedNetwork(CrossEntropySpec{}, true);
  const Outcome twice = GradientsOf(OnImages(network, 2, {2, 2, 2, 2, 2}));
  const Outcome once = GradientsOf(OnImages(network, 2, {1, 1, 1, 1, 1}));
  EXPECT_EQ(twice.report.terms, 2 * once.report.terms);
  EXPECT_EQ(twice.report.loss_sum, 2 * once.report.loss_sum);
  EXPECT_EQ(twice.gradients, once.gradients) << "powers of two round nothing";
}

TEST(Weights, OfOneAreAsGoodAsNone) {
  for (const KindSpec& objective :
       {KindSpec(CrossEntropySpec{.label_smoothing = 0.1}), KindSpec(MeanSquaredErrorSpec{})}) {
    const std::vector<float> ones(5, 1.0f);
    const Outcome weighted = GradientsOf(OnImages(WeightedNetwork(objective, true), 2, ones));
    const Outcome plain = GradientsOf(OnImages(WeightedNetwork(objective, false), 2, ones));
    EXPECT_EQ(weighted.report.loss_sum, plain.report.loss_sum);
    EXPECT_EQ(weighted.report.terms, plain.report.terms);
    EXPECT_EQ(weighted.gradients, plain.gradients);
  }
}

TEST(Weights, GiveTheSameBitsForEveryNumberOfStages) {
  for (const auto& [name, network] : WeightedNetworks()) {
    SCOPED_TRACE(name);
    std::vector<HarnessResult> results;
    for (const int stages : {1, 2, 3}) {
      HarnessOptions options = OnImages(network, 2);
      options.stages = stages;
      PipelineHarness pipeline(options);
      const auto result = pipeline.Train(3);
      ASSERT_TRUE(result.ok()) << result.status();
      results.push_back(*result);
    }
    EXPECT_GT(results[0].losses[0], results[0].losses[2]);
    EXPECT_TRUE(results[1] == results[0] && results[2] == results[0]);
  }
}

TEST(Weights, AreOfEveryTokenOfAText) {
  const CrossEntropySpec objective{.class_weights = {1, 0, 0.5, 4, 1, 2, 0.125, 1}};
  const auto options = [&](int64_t micro_batches) {
    HarnessOptions made{.batch_size = 5, .micro_batches = micro_batches};
    made.network = MakeSkipNetwork(false, Precision::kFloat32, objective);
    return made;
  };
  const Outcome whole = GradientsOf(options(1));
  EXPECT_EQ(whole.report.targets, 5 * kSkipContext);
  EXPECT_NE(whole.report.terms, whole.report.targets);
  for (const int64_t micro_batches : {2, 5}) ExpectNear(GradientsOf(options(micro_batches)), whole);
}

TEST(Weights, AllZeroAreAMiniBatchWithoutTerms) {
  for (const auto& [name, network] : WeightedNetworks()) {
    if (!network.objective.weights.valid()) continue;
    const Outcome none = GradientsOf(OnImages(network, 2, std::vector<float>(5, 0.0f)));
    EXPECT_EQ(none.report.terms, 0) << name;
    EXPECT_EQ(none.report.loss_sum, 0) << name;
    for (const auto& [parameter, values] : none.gradients) {
      for (const float value : values) EXPECT_EQ(value, 0) << name << " " << parameter;
    }
  }
}

TEST(Weights, CountInAnEvaluationAsInTraining) {
  for (const auto& [name, network] : WeightedNetworks()) {
    SCOPED_TRACE(name);
    PipelineHarness pipeline(OnImages(network, 3));
    const auto trained = pipeline.RunPass(true, 0);
    ASSERT_TRUE(trained.ok()) << trained.status();
    const auto evaluation = pipeline.Evaluate(0);
    ASSERT_TRUE(evaluation.ok()) << evaluation.status();
    EXPECT_EQ(evaluation->loss_sum, trained->back().loss_sum);
    EXPECT_EQ(evaluation->terms, trained->back().terms);
    ASSERT_EQ(evaluation->measures.size(), trained->back().measures.size());
    for (size_t i = 0; i < evaluation->measures.size(); ++i) {
      EXPECT_EQ(evaluation->measures[i].value, trained->back().measures[i].value);
    }
  }
}

// Labels of the five are 1, 0, 3, 2, 1; class 3 is ignored, class 2 weighs nothing.
TEST(Weights, AreThoseOfTheSampleTimesThoseOfItsClass) {
  const Network network = WeightedNetwork(kClassWeights, true);
  const TargetWeights weights(network);
  EXPECT_THAT(weights.names(), ElementsAre("labels", "weights"));
  const WeightedImages source({1, kWeightedNumbers, kWeightedClasses}, kSampleWeights);
  EXPECT_THAT(weights.Of(*source.Train(0, MicroBatchId(0), weights.names())),
              ElementsAre(0.5 * 3, 2 * 0.25, 0, 0, 3.25 * 3));
}

// The total is known before the first loss, without an image.
TEST(Weights, OfNumbersAreCountedWithoutReadingThem) {
  const Network network = WeightedNetwork(MeanSquaredErrorSpec{}, true);
  const TargetWeights weights(network);
  EXPECT_THAT(weights.names(), ElementsAre("weights"));
  EXPECT_EQ(weights.terms(), kWeightedNumbers);
  HarnessOptions options = OnImages(network, 5);
  const Outcome outcome = GradientsOf(options);
  const auto& source = static_cast<const WeightedImages&>(*options.source);
  EXPECT_EQ(source.reads("images"), 2 * 5) << "as input and as target, once a micro-batch";
  EXPECT_EQ(outcome.report.terms, (0.5 + 2 + 1 + 3.25) * kWeightedNumbers);
}

// Masks were decoded up to three times: for the terms of the mini-batch, for the loss, and for what
// they weigh.
TEST(Weights, NeedTheTargetsOnce) {
  for (const CrossEntropySpec& objective : {kClassWeights, CrossEntropySpec{.ignore_index = 3}}) {
    HarnessOptions options = OnImages(WeightedNetwork(objective, false), 5);
    EXPECT_GT(GradientsOf(options).report.terms, 0);
    EXPECT_EQ(static_cast<const WeightedImages&>(*options.source).reads("labels"), 5);
  }
}

}  // namespace
}  // namespace stagecoach
