#include "stage/backends/cuda/cudnn/convolution/convolution_problem.h"

#include "gtest/gtest.h"

namespace stagecoach::cudnn {
namespace {

// 5 x 4 images of 6 channels, a 3 x 2 window with strides 2 and 1, no padding: 2 x 3 places of 4.
ConvolutionProblem TwoGroups(ConvolutionPass pass = ConvolutionPass::kForward,
                             Precision precision = Precision::kFloat32) {
  return {.pass = pass,
          .precision = precision,
          .samples = 12,
          .height = 5,
          .width = 4,
          .channels = 6,
          .places_height = 2,
          .places_width = 3,
          .out = 4,
          .window_height = 3,
          .window_width = 2,
          .stride_height = 2,
          .groups = 2};
}

TEST(ConvolutionProblem, IsThatOfTheShapeAndTheTensors) {
  ConvolutionArgs args;
  args.pass = ConvolutionPass::kInputGradient;
  args.shape = {{12, 5, 4, 6, 2, 3, 3, 2, 2, 1, 7, 8, 9, 10}, 4, 2};
  args.precision = Precision::kBfloat16;
  ConvolutionProblem expected = TwoGroups(ConvolutionPass::kInputGradient, Precision::kBfloat16);
  expected.padding_height = 7;
  expected.padding_width = 8;
  expected.dilation_height = 9;
  expected.dilation_width = 10;
  EXPECT_EQ(ProblemOf(args), expected);
}

TEST(ConvolutionProblem, EveryFieldIsPartOfTheKey) {
  const ConvolutionProblem problem = TwoGroups();
  const auto expect_other = [&](auto&& change) {
    ConvolutionProblem other = problem;
    change(other);
    EXPECT_FALSE(other == problem);
  };
  expect_other([](auto& p) { p.pass = ConvolutionPass::kWeightGradient; });
  expect_other([](auto& p) { p.precision = Precision::kTensorFloat32; });
  expect_other([](auto& p) { p.bias = true; });
  for (int64_t ConvolutionProblem::*field :
       {&ConvolutionProblem::samples, &ConvolutionProblem::height, &ConvolutionProblem::width,
        &ConvolutionProblem::channels, &ConvolutionProblem::places_height,
        &ConvolutionProblem::places_width, &ConvolutionProblem::out,
        &ConvolutionProblem::window_height, &ConvolutionProblem::window_width,
        &ConvolutionProblem::stride_height, &ConvolutionProblem::stride_width,
        &ConvolutionProblem::padding_height, &ConvolutionProblem::padding_width,
        &ConvolutionProblem::dilation_height, &ConvolutionProblem::dilation_width,
        &ConvolutionProblem::groups}) {
    expect_other([&](auto& p) { p.*field = 99; });
  }
}

// The same views for all passes: what differs is which tensor is written.
TEST(ConvolutionProblem, ChannelsAreToldFirstAndLieLast) {
  for (const ConvolutionPass pass : {ConvolutionPass::kForward, ConvolutionPass::kInputGradient,
                                     ConvolutionPass::kWeightGradient}) {
    const ConvolutionLayouts layouts = LayoutsOf(TwoGroups(pass));
    EXPECT_EQ(layouts.image, (TensorLayout{{12, 6, 5, 4}, {120, 1, 24, 6}}));
    EXPECT_EQ(layouts.places, (TensorLayout{{12, 4, 2, 3}, {24, 1, 12, 4}}));
    EXPECT_EQ(layouts.weight, (TensorLayout{{4, 3, 3, 2}, {18, 1, 6, 3}})) << "3 of a group's";
    EXPECT_EQ(layouts.bias, (TensorLayout{{1, 4, 1, 1}, {4, 1, 4, 4}}));
    EXPECT_EQ(ElementsOf(layouts.image), 12 * 5 * 4 * 6);
    EXPECT_EQ(ElementsOf(layouts.weight), 4 * 3 * 3 * 2);
  }
}

TEST(ConvolutionProblem, WeightGradientsAccumulateAndOnlyTheirsInBfloat16AreWidened) {
  for (const Precision precision :
       {Precision::kFloat32, Precision::kTensorFloat32, Precision::kBfloat16}) {
    EXPECT_FALSE(TwoGroups(ConvolutionPass::kForward, precision).accumulates());
    EXPECT_FALSE(TwoGroups(ConvolutionPass::kInputGradient, precision).widens());
    const ConvolutionProblem weight = TwoGroups(ConvolutionPass::kWeightGradient, precision);
    EXPECT_TRUE(weight.accumulates());
    EXPECT_EQ(weight.widens(), precision == Precision::kBfloat16);
  }
}

TEST(ConvolutionProblem, WithoutSumsTheLibraryHasTheWholeWorkspace) {
  EXPECT_EQ(CutWorkspace(TwoGroups(), 1000),
            (ConvolutionRoom{.samples = 12, .library_bytes = 1000}));
  EXPECT_EQ(CutWorkspace(TwoGroups(), 0), (ConvolutionRoom{.samples = 12}));
}

// 72 weights are 288 bytes.
TEST(ConvolutionProblem, SumsComeFirstAndTheLibraryHasTheRest) {
  const ConvolutionProblem problem = TwoGroups(ConvolutionPass::kWeightGradient);
  EXPECT_EQ(CutWorkspace(problem, 1000),
            (ConvolutionRoom{.samples = 12, .library = 512, .library_bytes = 488}));
  EXPECT_EQ(CutWorkspace(problem, 512).samples, 12);
  EXPECT_EQ(CutWorkspace(problem, 511).samples, 0) << "does not fit";
  EXPECT_EQ(LeastWorkspace(problem), 512);
}

// A sample is 480 + 96 bytes of image and places.
TEST(ConvolutionProblem, AsManySamplesAreWidenedAtATimeAsFit) {
  constexpr int64_t kLibrary = int64_t{4} << 20;
  const ConvolutionProblem problem =
      TwoGroups(ConvolutionPass::kWeightGradient, Precision::kBfloat16);
  EXPECT_EQ(CutWorkspace(problem, kLibrary + 512 + 2048 + 512),
            (ConvolutionRoom{.samples = 4,
                             .image = 512,
                             .places = 512 + 2048,
                             .library = 512 + 2048 + 512,
                             .library_bytes = kLibrary}))
      << "4 samples: 1920 and 384 bytes";
  EXPECT_EQ(CutWorkspace(problem, kLibrary + 512 + 2048 + 511).samples, 3);
  EXPECT_EQ(CutWorkspace(problem, kLibrary + 512 + 2560 + 512).samples, 4)
      << "5 fit, but divide not";
  EXPECT_EQ(CutWorkspace(problem, 2 * kLibrary).samples, 12);
  EXPECT_EQ(LeastWorkspace(problem), kLibrary + 512 + 512 + 256);
  EXPECT_EQ(CutWorkspace(problem, LeastWorkspace(problem)).samples, 1);
  EXPECT_EQ(CutWorkspace(problem, LeastWorkspace(problem) - 1).samples, 0);
}

TEST(ConvolutionProblem, AnExecutionIsOfItsSamplesAndOfTheirWideForm) {
  const ConvolutionProblem narrow =
      TwoGroups(ConvolutionPass::kWeightGradient, Precision::kBfloat16);
  ConvolutionProblem expected =
      TwoGroups(ConvolutionPass::kWeightGradient, Precision::kTensorFloat32);
  expected.samples = 3;
  EXPECT_EQ(ExecutionOf(narrow, {.samples = 3}), expected);
  EXPECT_EQ(ExecutionOf(TwoGroups(), {.samples = 12}), TwoGroups());
}

}  // namespace
}  // namespace stagecoach::cudnn
