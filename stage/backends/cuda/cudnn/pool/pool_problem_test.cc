#include "stage/backends/cuda/cudnn/pool/pool_problem.h"

#include "absl/hash/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach::cudnn {
namespace {

using testing::ElementsAre;

// Three samples of 5 x 6 pixels with 7 channels, windows of 3 x 2.
PoolProblem OddWindows() {
  return {.samples = 3,
          .height = 5,
          .width = 6,
          .channels = 7,
          .places_height = 5,
          .places_width = 3,
          .window_height = 3,
          .window_width = 2,
          .stride_height = 1,
          .stride_width = 2,
          .padding_height = 1};
}

TEST(PoolProblem, AnImageIsToldAsOneChannelOfVolumesAsItLies) {
  const PoolLayouts layouts = LayoutsOf(OddWindows());
  EXPECT_THAT(layouts.image.dims, ElementsAre(3, 1, 5, 6, 7));
  EXPECT_THAT(layouts.image.strides, ElementsAre(210, 210, 42, 7, 1));
  EXPECT_EQ(layouts.image.elements(), 3 * 5 * 6 * 7);
  EXPECT_THAT(layouts.places.dims, ElementsAre(3, 1, 5, 3, 7));
  EXPECT_THAT(layouts.places.strides, ElementsAre(105, 105, 21, 7, 1));
}

TEST(PoolProblem, TheWindowIsOneWideWhereOurChannelsAre) {
  const VolumeWindow window = WindowOf(OddWindows());
  EXPECT_THAT(window.size, ElementsAre(3, 2, 1));
  EXPECT_THAT(window.stride, ElementsAre(1, 2, 1));
  EXPECT_THAT(window.padding, ElementsAre(1, 0, 0));
}

TEST(PoolProblem, EveryNumberOfTheArgumentsIsInTheKey) {
  const AveragePoolArgs args = {.pass = PoolPass::kGradient,
                                .shape = {3, 5, 6, 7, 8, 9, 3, 2, 1, 4, 1, 2, 1, 1},
                                .count_padding = true};
  const PoolProblem problem = ProblemOf(args);
  EXPECT_EQ(problem, (PoolProblem{.pass = PoolPass::kGradient,
                                  .dtype = problem.dtype,
                                  .count_padding = true,
                                  .samples = 3,
                                  .height = 5,
                                  .width = 6,
                                  .channels = 7,
                                  .places_height = 8,
                                  .places_width = 9,
                                  .window_height = 3,
                                  .window_width = 2,
                                  .stride_height = 1,
                                  .stride_width = 4,
                                  .padding_height = 1,
                                  .padding_width = 2}));
}

TEST(PoolProblem, EveryFieldIsPartOfTheKey) {
  const PoolProblem problem = OddWindows();
  const auto expect_other = [&](auto&& change) {
    PoolProblem other = problem;
    change(other);
    EXPECT_FALSE(other == problem);
    EXPECT_NE(absl::HashOf(other), absl::HashOf(problem));
  };
  expect_other([](auto& p) { p.pass = PoolPass::kGradient; });
  expect_other([](auto& p) { p.dtype = DType::kBF16; });
  expect_other([](auto& p) { p.count_padding = true; });
  for (int64_t PoolProblem::*field :
       {&PoolProblem::samples, &PoolProblem::height, &PoolProblem::width, &PoolProblem::channels,
        &PoolProblem::places_height, &PoolProblem::places_width, &PoolProblem::window_height,
        &PoolProblem::window_width, &PoolProblem::stride_height, &PoolProblem::stride_width,
        &PoolProblem::padding_height, &PoolProblem::padding_width}) {
    expect_other([&](auto& p) { p.*field = 99; });
  }
}

PoolProblem Windows(int64_t extent, int64_t places, int64_t window, int64_t stride,
                    int64_t padding) {
  return {.samples = 1,
          .height = extent,
          .width = extent,
          .channels = 1,
          .places_height = places,
          .places_width = places,
          .window_height = window,
          .window_width = window,
          .stride_height = stride,
          .stride_width = stride,
          .padding_height = padding,
          .padding_width = padding};
}

TEST(PoolProblem, WindowsSideBySideTileAnImage) {
  EXPECT_TRUE(Tiles(Windows(6, 3, 2, 2, 0)));
  EXPECT_TRUE(Tiles(Windows(7, 1, 7, 7, 0))) << "all of it";
  EXPECT_TRUE(Tiles(Windows(7, 1, 7, 1, 0))) << "which does not move";
  EXPECT_FALSE(Tiles(Windows(7, 3, 2, 2, 0))) << "a row is left over";
  EXPECT_FALSE(Tiles(Windows(6, 5, 2, 1, 0))) << "they overlap";
  EXPECT_FALSE(Tiles(Windows(6, 2, 2, 3, 0))) << "there are gaps";
  EXPECT_FALSE(Tiles(Windows(6, 4, 2, 2, 1))) << "they reach beyond the image";
  PoolProblem one_way = Windows(6, 3, 2, 2, 0);
  one_way.stride_width = 1;
  one_way.places_width = 5;
  EXPECT_FALSE(Tiles(one_way));
}

}  // namespace
}  // namespace stagecoach::cudnn
