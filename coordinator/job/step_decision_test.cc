#include "coordinator/job/step_decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace stagecoach {
namespace {

// Stages with one cell each, of as many layers as they report.
absl::StatusOr<StepDecision> Decide(const std::vector<StepReport>& reports, int layers,
                                    double clip) {
  std::vector<std::vector<LayerRange>> cells;
  int first = 0;
  for (const StepReport& report : reports) {
    const int last = first + static_cast<int>(report.layer_squared_norms.size());
    cells.push_back({{first, last}});
    first = last;
  }
  return DecideStep(reports, cells, layers, clip);
}

using ::testing::HasSubstr;

StepReport Report(std::vector<double> norms) {
  StepReport report;
  report.layer_squared_norms = std::move(norms);
  return report;
}

StepReport LastReport(std::vector<double> norms, double loss_sum, int64_t targets) {
  StepReport report = Report(std::move(norms));
  report.has_loss = true;
  report.loss_sum = loss_sum;
  report.targets = targets;
  report.terms = static_cast<double>(targets);
  return report;
}

TEST(StepDecisionTest, AMiniBatchWithoutTermsIsSkippedAndNothingIsWrong) {
  StepReport none = LastReport({0, 0}, 0, 8);
  none.terms = 0;
  none.measures = {{"accuracy", 0}};
  const absl::StatusOr<StepDecision> decision = Decide(std::vector{none}, 2, 0);
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_TRUE(decision->empty);
  EXPECT_FALSE(decision->finite);
  EXPECT_TRUE(decision->measures.empty()) << "of nothing there is no mean";
}

TEST(StepDecisionTest, MeasuresAreMeansOverTheTerms) {
  StepReport report = LastReport({1}, 12, 8);
  report.terms = 6;
  report.measures = {{"accuracy", 3}, {"top_5", 6}};
  const absl::StatusOr<StepDecision> decision = Decide(std::vector{report}, 1, 0);
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->loss, 2);
  EXPECT_EQ(decision->targets, 8);
  EXPECT_EQ(decision->measures, (std::vector<Measure>{{"accuracy", 0.5}, {"top_5", 1}}));
}

TEST(StepDecisionTest, PaddingIsAShareOfThePositionsWhereLengthsVary) {
  StepReport report = LastReport({1}, 12, 8);
  report.measures = {{"accuracy", 4}};
  report.padding = {.positions = 40, .padded = 10};
  absl::StatusOr<StepDecision> decision = Decide(std::vector{report}, 1, 0);
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->measures, (std::vector<Measure>{{"accuracy", 0.5}, {"padding", 0.25}}));
  report.padding.padded = 0;
  decision = Decide(std::vector{report}, 1, 0);
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->measures, (std::vector<Measure>{{"accuracy", 0.5}, {"padding", 0}}))
      << "pairs of one length have none, which is worth a number";
  report.padding = {};
  decision = Decide(std::vector{report}, 1, 0);
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->measures, (std::vector<Measure>{{"accuracy", 0.5}}));
}

// Sums of doubles depend on their order; this one must not depend on where the layers lie.
TEST(StepDecisionTest, GivesTheSameNormBitForBitForEveryPartition) {
  std::mt19937_64 random(3);
  std::vector<double> norms;
  for (int l = 0; l < 24; ++l)
    norms.push_back(std::ldexp(1.0 + 1e-16 * double(random() % 99), l % 7));
  const auto norm = [&](const std::vector<int>& cuts) {
    std::vector<StepReport> reports;
    int first = 0;
    for (int cut : cuts) {
      reports.push_back(Report({norms.begin() + first, norms.begin() + cut}));
      first = cut;
    }
    reports.push_back(LastReport({norms.begin() + first, norms.end()}, 10, 5));
    return Decide(reports, 24, 0.5).value();
  };
  const StepDecision whole = norm({});
  EXPECT_EQ(whole.loss, 2.0);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int> cuts;
    for (int l = 1; l < 24; ++l) {
      if (random() % 4 == 0) cuts.push_back(l);
    }
    const StepDecision split = norm(cuts);
    EXPECT_EQ(split.gradient_norm, whole.gradient_norm);
    EXPECT_EQ(split.gradient_scale, whole.gradient_scale);
  }
}

TEST(StepDecisionTest, ClipsByTheGlobalNormOnly) {
  const std::vector<StepReport> reports = {Report({9}), LastReport({16}, 1, 1)};
  EXPECT_EQ(Decide(reports, 2, 0).value().gradient_scale, 1);
  EXPECT_EQ(Decide(reports, 2, 5).value().gradient_scale, 1);
  EXPECT_EQ(Decide(reports, 2, 2.5).value().gradient_scale, 0.5);
  EXPECT_EQ(Decide(reports, 2, 2.5).value().gradient_norm, 5);
  const std::vector<StepReport> zero = {LastReport({0}, 1, 1)};
  EXPECT_EQ(Decide(zero, 1, 1).value().gradient_scale, 1) << "no division by a norm of zero";
}

TEST(StepDecisionTest, CallsAStepNonFiniteForAnyBadNumberAnywhere) {
  const double inf = std::numeric_limits<double>::infinity();
  StepReport flagged = LastReport({1}, 1, 1);
  flagged.finite = false;
  for (const StepReport& bad : {LastReport({std::nan("")}, 1, 1), LastReport({inf}, 1, 1),
                                LastReport({1}, inf, 1), flagged}) {
    const std::vector<StepReport> reports = {Report({1}), bad};
    EXPECT_FALSE(Decide(reports, 2, 1).value().finite);
  }
}

TEST(StepDecisionTest, RefusesReportsThatDoNotFitTheModel) {
  const std::vector<StepReport> missing = {Report({1}), LastReport({1}, 1, 1)};
  EXPECT_THAT(Decide(missing, 3, 0).status().message(), HasSubstr("2 layers, the model has 3"));
  const std::vector<StepReport> no_loss = {Report({1})};
  EXPECT_THAT(Decide(no_loss, 1, 0).status().message(), HasSubstr("no stage reported a loss"));
  const std::vector<StepReport> no_token = {LastReport({1}, 1, 0)};
  EXPECT_FALSE(Decide(no_token, 1, 0).ok());
}

TEST(StepDecisionTest, MeasuresTheBubbleOverAllStages) {
  StepReport busy = Report({});
  busy.phases[Phase::kForward] = 0.2;
  busy.phases[Phase::kRecompute] = 0.2;
  busy.phases[Phase::kBackward] = 0.4;
  busy.phases[Phase::kSend] = 9;  // not work on the network
  const std::vector<StepReport> reports = {busy, Report({})};
  EXPECT_DOUBLE_EQ(MeasuredBubble(reports, 1.0), 1 - 0.8 / 2);
  EXPECT_EQ(MeasuredBubble(reports, 0.1), 0) << "clocks differ a little: never negative";
}

}  // namespace
}  // namespace stagecoach
