#include "stage/backends/cuda/cudnn/convolution/convolution_choice.h"

#include "devices/card/card_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach::cudnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr CudnnOffer kOnHopper = {.version = 91900, .compute_capability = 90};
constexpr ConvolutionPass kPasses[] = {ConvolutionPass::kForward, ConvolutionPass::kInputGradient,
                                       ConvolutionPass::kWeightGradient};
constexpr Precision kPrecisions[] = {Precision::kFloat32, Precision::kTensorFloat32,
                                     Precision::kBfloat16};

// As in a ResNet.
ConvolutionProblem ThreeByThree(int64_t size = 56, int64_t channels = 64) {
  return {.samples = 32,
          .height = size,
          .width = size,
          .channels = channels,
          .places_height = size,
          .places_width = size,
          .out = channels,
          .window_height = 3,
          .window_width = 3,
          .padding_height = 1,
          .padding_width = 1};
}

std::string WhyOwn(const ConvolutionProblem& problem, const CudnnOffer& offer = kOnHopper,
                   int64_t workspace_bytes = kCardWorkspaceBytes) {
  return WhyOwnKernels(problem, offer, workspace_bytes);
}

TEST(ConvolutionChoice, ConvolutionsOfAResnetAreForCudnnInEveryPassAndPrecision) {
  for (const ConvolutionPass pass : kPasses) {
    for (const Precision precision : kPrecisions) {
      for (const auto& [size, channels] : {std::pair{56, 64}, {28, 128}, {14, 256}, {7, 512}}) {
        ConvolutionProblem problem = ThreeByThree(size, channels);
        problem.pass = pass;
        problem.precision = precision;
        EXPECT_THAT(WhyOwn(problem), IsEmpty()) << size << " " << PrecisionName(precision);
        EXPECT_THAT(WhyOwn(problem, {91002, 80}), IsEmpty());
      }
    }
  }
}

TEST(ConvolutionChoice, NoSamplesAreForOwnKernels) {
  ConvolutionProblem problem = ThreeByThree();
  problem.samples = 0;
  EXPECT_THAT(WhyOwn(problem), HasSubstr("no samples"));
}

TEST(ConvolutionChoice, APaddingThatIsAsWideAsTheWindowIsForOwnKernels) {
  ConvolutionProblem problem = ThreeByThree();
  problem.padding_width = 3;
  EXPECT_THAT(WhyOwn(problem), HasSubstr("the padding, 1x3,"));
  problem.padding_width = 2;
  EXPECT_THAT(WhyOwn(problem), IsEmpty());
  problem.dilation_width = 2;
  problem.padding_width = 4;
  EXPECT_THAT(WhyOwn(problem), IsEmpty()) << "the window reaches over 5 columns";
  problem.padding_width = 5;
  EXPECT_THAT(WhyOwn(problem), HasSubstr("the padding, 1x5,"));
}

TEST(ConvolutionChoice, TensorsThatNoOffsetOf32BitsReachesAreForOwnKernels) {
  ConvolutionProblem problem = ThreeByThree(2048, 256);
  problem.samples = 2;
  EXPECT_THAT(WhyOwn(problem), HasSubstr("the image has 2147483648 elements"));
  problem.samples = 1;
  EXPECT_THAT(WhyOwn(problem), IsEmpty());
  problem.out = 512;
  EXPECT_THAT(WhyOwn(problem), HasSubstr("the result has 2147483648 elements"));
}

// Only what fits is taken, so that a forecast has nothing to count.
TEST(ConvolutionChoice, WhatTheFixedWorkspaceDoesNotHoldIsForOwnKernels) {
  ConvolutionProblem wide = ThreeByThree(7, 1024);
  wide.pass = ConvolutionPass::kWeightGradient;
  EXPECT_THAT(WhyOwn(wide), HasSubstr("it needs 37748736 bytes of workspace, there are 33554432"));
  wide.pass = ConvolutionPass::kForward;
  EXPECT_THAT(WhyOwn(wide), IsEmpty()) << "no sums";
  ConvolutionProblem large = ThreeByThree(512, 64);
  large.pass = ConvolutionPass::kWeightGradient;
  EXPECT_THAT(WhyOwn(large), IsEmpty());
  large.precision = Precision::kBfloat16;
  EXPECT_THAT(WhyOwn(large), HasSubstr("bytes of workspace")) << "a sample is 128 MiB in float32";
}

TEST(ConvolutionChoice, OldVersionsAndOldCardsAreNotUsed) {
  EXPECT_THAT(WhyOwn(ThreeByThree(), {91001, 90}), HasSubstr("older than 9.10.2"));
  EXPECT_THAT(WhyOwn(ThreeByThree(), {91900, 75}), HasSubstr("7.5, 8.0 is needed"));
  EXPECT_THAT(WhyOwn(ThreeByThree(), {91900, 120}), IsEmpty());
}

}  // namespace
}  // namespace stagecoach::cudnn
