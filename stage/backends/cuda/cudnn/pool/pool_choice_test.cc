#include "stage/backends/cuda/cudnn/pool/pool_choice.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach::cudnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr CudnnOffer kPoolsOnHopper = {.version = 91900, .compute_capability = 90};

// As in an AmoebaNet.
PoolProblem AveragesOfThreeByThree() {
  return {.samples = 32,
          .height = 28,
          .width = 28,
          .channels = 192,
          .places_height = 28,
          .places_width = 28,
          .window_height = 3,
          .window_width = 3,
          .padding_height = 1,
          .padding_width = 1};
}
// As at the end of a ResNet.
PoolProblem MeanOfTheImage() {
  return {.samples = 32,
          .height = 7,
          .width = 7,
          .channels = 2048,
          .places_height = 1,
          .places_width = 1,
          .window_height = 7,
          .window_width = 7,
          .stride_height = 7,
          .stride_width = 7};
}

std::string WhyOwnPool(PoolProblem problem, PoolPass pass = PoolPass::kForward,
                       const CudnnOffer& offer = kPoolsOnHopper) {
  problem.pass = pass;
  return WhyOwnKernels(problem, offer);
}

TEST(PoolChoice, AveragesAreForCudnnInBothTypes) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (PoolProblem problem : {AveragesOfThreeByThree(), MeanOfTheImage()}) {
      problem.dtype = dtype;
      EXPECT_THAT(WhyOwnPool(problem), IsEmpty());
      EXPECT_THAT(WhyOwnPool(problem, PoolPass::kForward, {91002, 80}), IsEmpty());
    }
  }
}

TEST(PoolChoice, AGradientIsWhereNothingIsSummed) {
  EXPECT_THAT(WhyOwnPool(MeanOfTheImage(), PoolPass::kGradient), IsEmpty());
  EXPECT_THAT(WhyOwnPool(AveragesOfThreeByThree(), PoolPass::kGradient),
              HasSubstr("windows do not tile"));
}

TEST(PoolChoice, NoSamplesAndVeryManyAreForOwnKernels) {
  PoolProblem problem = MeanOfTheImage();
  problem.channels = 2;
  problem.samples = 0;
  EXPECT_THAT(WhyOwnPool(problem), HasSubstr("no samples"));
  problem.samples = 65535;
  EXPECT_THAT(WhyOwnPool(problem), IsEmpty());
  problem.samples = 65536;
  EXPECT_THAT(WhyOwnPool(problem), HasSubstr("there are 65536 samples, over 65535"));
}

TEST(PoolChoice, TensorsThatNoOffsetOf32BitsReachesAreForOwnKernels) {
  PoolProblem problem = AveragesOfThreeByThree();
  problem.samples = 2;
  problem.height = problem.width = problem.places_height = problem.places_width = 2048;
  problem.channels = 256;
  EXPECT_THAT(WhyOwnPool(problem), HasSubstr("the image has 2147483648 elements"));
  problem.height = 2047;
  EXPECT_THAT(WhyOwnPool(problem), HasSubstr("the result has 2147483648 elements"));
  problem.places_height = 2047;
  EXPECT_THAT(WhyOwnPool(problem), IsEmpty());
}

TEST(PoolChoice, OldVersionsAndOldCardsAreNotUsed) {
  EXPECT_THAT(WhyOwnPool(MeanOfTheImage(), PoolPass::kForward, {91001, 90}),
              HasSubstr("older than 9.10.2"));
  EXPECT_THAT(WhyOwnPool(MeanOfTheImage(), PoolPass::kForward, {91900, 75}),
              HasSubstr("7.5, 8.0 is needed"));
  EXPECT_THAT(WhyOwnPool(MeanOfTheImage(), PoolPass::kForward, {91900, 120}), IsEmpty());
}

}  // namespace
}  // namespace stagecoach::cudnn
