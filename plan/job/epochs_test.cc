#include "plan/job/epochs.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/learning_rates/constant.h"
#include "plan/learning_rates/exponential.h"
#include "plan/learning_rates/step.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TrainingSpec InEpochs(double epochs, int64_t batch_size) {
  TrainingSpec training;
  training.epochs = epochs;
  training.batch_size = batch_size;
  return training;
}

TEST(Epochs, AreTheStepsThatTakeAllOfTheirSamples) {
  EXPECT_EQ(StepsOf(InEpochs(1, 4), 10), 3) << "the third takes 2 samples of the next time";
  EXPECT_EQ(StepsOf(InEpochs(2, 4), 10), 5);
  EXPECT_EQ(StepsOf(InEpochs(0.5, 4), 10), 2);
  EXPECT_EQ(StepsOf(InEpochs(0.1, 64), 60'000), 94);
  EXPECT_EQ(StepsOf(InEpochs(0.7, 10), 100), 7) << "0.7 * 10 is a little more than 7";
  EXPECT_EQ(StepsOf(InEpochs(3, 4), 0), 0) << "not known yet";
  TrainingSpec steps;
  steps.steps = 17;
  steps.batch_size = 4;
  EXPECT_EQ(StepsOf(steps, 10), 17);
}

std::vector<int64_t> Ends(double every, double steps_per_epoch, int64_t steps) {
  std::vector<int64_t> ends;
  for (int64_t step = 0; step <= steps; ++step) {
    if (EndsEpochs(step, every, steps_per_epoch)) ends.push_back(step);
  }
  return ends;
}

TEST(Epochs, EndWithTheStepThatHasTheirLastSample) {
  EXPECT_THAT(Ends(1, 2.5, 10), ElementsAre(3, 5, 8, 10));
  EXPECT_THAT(Ends(2, 2.5, 10), ElementsAre(5, 10));
  EXPECT_THAT(Ends(0.5, 4, 6), ElementsAre(2, 4, 6));
  EXPECT_THAT(Ends(0.1, 30, 9), ElementsAre(3, 6, 9)) << "whatever 0.1 is rounded to";
  EXPECT_THAT(Ends(1, 0.25, 3), ElementsAre(1, 2, 3)) << "several in one step";
  EXPECT_THAT(Ends(0, 2.5, 10), ElementsAre());
}

TEST(Epochs, OfTooFewOrTooManyStepsAreRefusedWhenTheSamplesAreKnown) {
  JobSpec spec;
  spec.training = InEpochs(2, 4);
  EXPECT_TRUE(CheckEpochs(spec, 10).ok());
  spec.training.learning_rate = ConstantRate{.peak = 1, .warmup_epochs = 3};
  EXPECT_THAT(std::string(CheckEpochs(spec, 10).message()),
              HasSubstr("warmup_epochs: 3; that are 8 steps, and the job has 5"));
  spec.training = InEpochs(1e6, 1);
  EXPECT_THAT(std::string(CheckEpochs(spec, 1'000'000).message()),
              HasSubstr("training.epochs: 1e+06; of 1000000 samples"));
  EXPECT_THAT(std::string(CheckEpochs(spec, 0).message()), HasSubstr("data: it has no samples"));
}

TEST(Epochs, OfTheLearningRateEndWithTheSameStepsAsAllOthers) {
  const double per_epoch = 50'000 / 96.0;  // 30 of them are 15625 and a rounding
  const StepRate step{.peak = 1, .factor = 0.5, .milestone_epochs = {30}};
  EXPECT_EQ(LearningRateAt(step, 15'624, 20'000, per_epoch), 1);
  EXPECT_EQ(LearningRateAt(step, 15'625, 20'000, per_epoch), 0.5);
  const ExponentialRate stairs{.peak = 1, .factor = 0.5, .every_epochs = 30, .staircase = true};
  EXPECT_EQ(LearningRateAt(stairs, 15'624, 20'000, per_epoch), 1);
  EXPECT_EQ(LearningRateAt(stairs, 15'625, 20'000, per_epoch), 0.5);
  JobSpec spec;
  spec.training = InEpochs(0.07, 1);
  spec.training.learning_rate = ConstantRate{.peak = 1, .warmup_epochs = 0.07};
  EXPECT_TRUE(CheckEpochs(spec, 100).ok()) << "all 7 steps of the job: " << CheckEpochs(spec, 100);
}

TEST(Epochs, OfTheLearningRateAreNoneOrEnough) {
  EXPECT_TRUE(ValidateLearningRate(ConstantRate{.peak = 1, .warmup_epochs = kMinEpochs}).ok());
  EXPECT_THAT(
      std::string(ValidateLearningRate(ConstantRate{.peak = 1, .warmup_epochs = 1e-300}).message()),
      HasSubstr("training.learning_rate.constant.warmup_epochs"));
  EXPECT_THAT(
      std::string(
          ValidateLearningRate(ExponentialRate{.peak = 1, .every_epochs = 1e-300}).message()),
      HasSubstr("training.learning_rate.exponential.every_epochs"));
}

}  // namespace
}  // namespace stagecoach
