#include "base/numbers/resampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/numbers/random.h"

namespace stagecoach {
namespace {

using testing::FloatEq;
using testing::Pointwise;

std::vector<float> Resampled(const std::vector<float>& from, GridSize from_size, GridSize to_size,
                             int64_t channels = 1) {
  std::vector<float> to(static_cast<size_t>(to_size.height * to_size.width * channels), -1.0f);
  ResampleGrid(from, from_size, channels, to, to_size);
  return to;
}

std::vector<float> Numbers(size_t count) {
  std::vector<float> numbers;
  for (size_t i = 0; i < count; ++i) numbers.push_back(RandomNormal({.seed = 3}, i));
  return numbers;
}

TEST(ResamplingWeights, AddUpToOneInsideOfTheOldLine) {
  std::vector<double> weights;
  for (const auto filter : {ResamplingFilter::kTriangle, ResamplingFilter::kCubic}) {
    for (const auto& [from, to] : {std::pair(1, 1), {1, 5}, {5, 1}, {14, 24}, {24, 14}, {7, 7}}) {
      for (int i = 0; i < to; ++i) {
        const int64_t first = ResamplingWeights(filter, from, to, i, &weights);
        EXPECT_GE(first, 0);
        EXPECT_LE(first + std::ssize(weights), from);
        EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0), 1, 1e-12);
      }
    }
  }
}

TEST(ResamplingWeights, OfATriangleFallWithTheDistance) {
  std::vector<double> weights;
  EXPECT_EQ(ResamplingWeights(ResamplingFilter::kTriangle, 2, 4, 1, &weights), 0);
  EXPECT_EQ(weights, (std::vector{0.75, 0.25}));
}

// By PyTorch's interpolate(mode="bicubic", antialias=True, align_corners=False) in float64.
TEST(ResampleGrid, GivesPyTorchsNumbers) {
  const std::vector<float> three = {1, -2, 5, 3, 0, 7, -4, 2, 6};
  EXPECT_THAT(Resampled(three, {3, 3}, {2, 4}),
              Pointwise(FloatEq(), {2.15632112311636f, -0.6254386346880643f, 1.0414227304737178f,
                                    6.111928319877339f, -1.6192233056227687f, -0.03788962847623162f,
                                    3.465223795659674f, 6.69396995759565f}));
  const std::vector<float> two = {1, -2, 5, 3};
  EXPECT_THAT(Resampled(two, {2, 2}, {1, 1}), Pointwise(FloatEq(), {1.75f}));
  EXPECT_THAT(Resampled(two, {2, 2}, {3, 3}),
              Pointwise(FloatEq(), {0.9385387811634349f, -0.7960526315789478f, -2.53064404432133f,
                                    3.1644736842105265f, 1.75f, 0.3355263157894737f,
                                    5.3904085872576175f, 4.296052631578947f, 3.2016966759002763f}));
  std::vector<float> five(25);
  for (size_t i = 0; i < five.size(); ++i) five[i] = static_cast<float>((7 * i) % 11);
  EXPECT_THAT(Resampled(five, {5, 5}, {2, 3}),
              Pointwise(FloatEq(), {3.585404423199699f, 5.210517824178326f, 6.357143091001359f,
                                    4.532741827230016f, 4.576603631648496f, 4.413403833876275f}));
}

TEST(ResampleGrid, OfTheSameSizeKeepsTheNumbers) {
  const std::vector<float> numbers = Numbers(3 * 5 * 2);
  EXPECT_EQ(Resampled(numbers, {3, 5}, {3, 5}, 2), numbers);
}

TEST(ResampleGrid, TakesEachChannelByItself) {
  const std::vector<float> first = Numbers(4 * 3);
  std::vector<float> second = first, both;
  std::reverse(second.begin(), second.end());
  for (size_t i = 0; i < first.size(); ++i) both.insert(both.end(), {first[i], second[i]});
  const std::vector<float> wide = Resampled(both, {4, 3}, {2, 7}, 2);
  const std::vector<float> one = Resampled(first, {4, 3}, {2, 7});
  const std::vector<float> other = Resampled(second, {4, 3}, {2, 7});
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(wide[2 * i], one[i]);
    EXPECT_EQ(wide[2 * i + 1], other[i]);
  }
}

}  // namespace
}  // namespace stagecoach
