#include "stage/pictures/augment.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

constexpr int kDrawn = 400;

// Each pixel is another one.
Picture Numbered(int64_t height, int64_t width) {
  Picture picture(height, width, 1);
  for (size_t i = 0; i < picture.bytes.size(); ++i) picture.bytes[i] = static_cast<uint8_t>(i + 1);
  return picture;
}
Picture Coloured(int64_t height, int64_t width) {
  Picture picture(height, width, 3);
  for (size_t i = 0; i < picture.bytes.size(); ++i) {
    picture.bytes[i] = static_cast<uint8_t>(20 + i * 37 % 200);
  }
  return picture;
}

TEST(SampleDraws, AreOfSeedEpochAndSampleAlone) {
  std::set<uint32_t> seen;
  for (const uint64_t seed : {1, 2}) {
    for (const uint64_t epoch : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
      for (const uint64_t sample : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
        for (const uint32_t i : {0, 1, 4}) {
          seen.insert(SampleDraws(seed, epoch, sample).Bits(i));
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 54u);
  // Bits of jobs that ran before.
  EXPECT_EQ(SampleDraws(1, 0, 0).Bits(0), Philox4x32({0, 0, 0, 0xa0600000U}, {1, 0})[0]);
  EXPECT_EQ(SampleDraws(1, 2, 3).Bits(6), Philox4x32({1, 3, 2, 0xa0600000U}, {1, 0})[2]);
}

TEST(Augment, WithoutAnythingItIsWhatEvaluationSees) {
  const Picture picture = Coloured(9, 14);
  const Augmentation plain{.height = 6, .width = 6, .shorter_side = 7};
  EXPECT_EQ(Augment(picture, plain, SampleDraws(1, 0, 0)), FitPicture(picture, plain));
}

// Every place of the window comes, about equally often; what is outside of the picture is zero.
TEST(Augment, AShiftTakesEveryPlaceAndFillsWithZeros) {
  const Picture picture = Numbered(4, 5);
  const Augmentation shift{.height = 4, .width = 5, .padding = 2};
  std::map<std::pair<int64_t, int64_t>, int> places;
  for (int sample = 0; sample < kDrawn; ++sample) {
    const Picture shifted = Augment(picture, shift, SampleDraws(3, 0, sample));
    std::vector<std::pair<int64_t, int64_t>> fitting;
    for (int64_t down = -2; down <= 2; ++down) {
      for (int64_t right = -2; right <= 2; ++right) {
        bool same = true;
        for (int64_t y = 0; y < 4; ++y) {
          for (int64_t x = 0; x < 5; ++x) {
            const bool inside = y + down >= 0 && y + down < 4 && x + right >= 0 && x + right < 5;
            same = same && shifted.row(y)[x] == (inside ? picture.row(y + down)[x + right] : 0);
          }
        }
        if (same) fitting.emplace_back(down, right);
      }
    }
    ASSERT_EQ(fitting.size(), 1u) << sample;
    ++places[fitting.front()];
  }
  EXPECT_EQ(places.size(), 25u);
  for (const auto& [place, count] : places) EXPECT_LT(count, 40);
}

TEST(Augment, PaddingBeyondThePictureIsAllowed) {
  const Augmentation shift{.height = 2, .width = 2, .padding = 7};
  int empty = 0;
  for (int sample = 0; sample < kDrawn; ++sample) {
    const Picture shifted = Augment(Numbered(2, 2), shift, SampleDraws(3, 0, sample));
    ASSERT_EQ(shifted.bytes.size(), 4u);
    empty += shifted.bytes == std::vector<uint8_t>(4) ? 1 : 0;
  }
  EXPECT_GT(empty, kDrawn / 2);
}

TEST(Augment, HalfOfThePicturesAreMirrored) {
  const Picture picture = Coloured(2, 3);
  const Augmentation flip{.height = 2, .width = 3, .flip = true};
  int mirrored = 0;
  for (int sample = 0; sample < kDrawn; ++sample) {
    const Picture result = Augment(picture, flip, SampleDraws(3, 0, sample));
    if (result == picture) continue;
    ++mirrored;
    for (int64_t y = 0; y < 2; ++y) {
      for (int64_t x = 0; x < 9; ++x) {
        ASSERT_EQ(result.row(y)[x], picture.row(y)[(2 - x / 3) * 3 + x % 3]);
      }
    }
  }
  EXPECT_NEAR(mirrored, kDrawn / 2, 40);
}

// Parts are of the shares of the area that were asked for, and all of the picture is seen.
TEST(Augment, RandomPartsHaveTheAreaThatWasAskedFor) {
  Picture across(64, 64, 1), down(64, 64, 1);
  for (int64_t y = 0; y < 64; ++y) {
    for (int64_t x = 0; x < 64; ++x) {
      across.row(y)[x] = static_cast<uint8_t>(4 * x);
      down.row(y)[x] = static_cast<uint8_t>(4 * y);
    }
  }
  const Augmentation part{.height = 16, .width = 16, .least_area = 0.25};
  double smallest = 1, largest = 0;
  int left = 255, right = 0;
  for (int sample = 0; sample < kDrawn; ++sample) {
    const SampleDraws draws(5, 1, sample);
    const Picture a = Augment(across, part, draws), d = Augment(down, part, draws);
    // 15 of 16 steps lie between the centers of the first and the last pixel.
    const double width = (a.row(8)[15] - a.row(8)[0]) / 4.0 * 16 / 15;
    const double height = (d.row(15)[8] - d.row(0)[8]) / 4.0 * 16 / 15;
    EXPECT_GT(width / height, 0.68);
    EXPECT_LT(width / height, 1.48);
    const double area = width * height / (64 * 64);
    smallest = std::min(smallest, area);
    largest = std::max(largest, area);
    left = std::min<int>(left, a.row(8)[0]);
    right = std::max<int>(right, a.row(8)[15]);
  }
  EXPECT_NEAR(smallest, 0.25, 0.05);
  EXPECT_NEAR(largest, 0.97, 0.06);
  EXPECT_LT(left, 16);
  EXPECT_GT(right, 236);
}

// No part of three to four to one fits: it is the middle, as high as wide at most by that.
TEST(Augment, ALineHasItsMiddleAsItsPart) {
  Picture line(3, 600, 1);
  for (int64_t x = 290; x < 310; ++x) line.row(1)[x] = 255;
  const Augmentation part{.height = 3, .width = 4, .least_area = 1};
  const Picture result = Augment(line, part, SampleDraws(1, 0, 0));
  EXPECT_THAT(std::vector<uint8_t>(result.row(1), result.row(1) + 4),
              ElementsAre(255, 255, 255, 255));
}

TEST(Augment, ColoursChangeWithinWhatWasAskedFor) {
  Picture picture(1, 2, 3);
  picture.bytes = {100, 100, 100, 200, 100, 50};
  const auto changed = [&picture](const Augmentation& augmentation) {
    std::set<int> values;
    for (int sample = 0; sample < kDrawn; ++sample) {
      values.insert(Augment(picture, augmentation, SampleDraws(9, 0, sample)).bytes[3]);
    }
    return values;
  };
  const std::set<int> bright = changed({.height = 1, .width = 2, .brightness = 0.2});
  EXPECT_GE(*bright.begin(), 160);
  EXPECT_LE(*bright.begin(), 163);
  EXPECT_LE(*bright.rbegin(), 240);
  EXPECT_GE(*bright.rbegin(), 237);
  const std::set<int> saturated = changed({.height = 1, .width = 2, .saturation = 0.5});
  EXPECT_NEAR(*saturated.begin(), 124 + 38, 2) << "half way to its grey, 124";
  EXPECT_NEAR(*saturated.rbegin(), 124 + 114, 2);
  const std::set<int> contrasts = changed({.height = 1, .width = 2, .contrast = 0.5});
  EXPECT_NEAR(*contrasts.begin(), 112 + 44, 2) << "half way to the mean grey, 112";
}

TEST(Augment, ATurnOfTheHueKeepsTheLargestAndTheSmallestChannel) {
  Picture picture(1, 4, 3);
  picture.bytes = {255, 0, 0, 40, 200, 90, 7, 7, 7, 0, 128, 255};
  const Augmentation turn{.height = 1, .width = 4, .hue = 0.5};
  std::set<std::vector<uint8_t>> reds;
  for (int sample = 0; sample < kDrawn; ++sample) {
    const Picture turned = Augment(picture, turn, SampleDraws(9, 0, sample));
    for (int64_t x = 0; x < 4; ++x) {
      const uint8_t* const was = picture.bytes.data() + 3 * x;
      const uint8_t* const is = turned.bytes.data() + 3 * x;
      ASSERT_EQ(std::max({was[0], was[1], was[2]}), std::max({is[0], is[1], is[2]}));
      ASSERT_EQ(std::min({was[0], was[1], was[2]}), std::min({is[0], is[1], is[2]}));
    }
    reds.emplace(turned.bytes.begin(), turned.bytes.begin() + 3);
  }
  EXPECT_GT(reds.size(), 200u);
  for (const int channel : {0, 1, 2}) {  // half a circle each way is all of it
    EXPECT_TRUE(std::any_of(reds.begin(), reds.end(), [channel](const auto& colours) {
      return colours[static_cast<size_t>(channel)] == 255 &&
             colours[static_cast<size_t>((channel + 1) % 3)] < 128 &&
             colours[static_cast<size_t>((channel + 2) % 3)] < 128;
    })) << channel;
  }
}

// Red goes towards yellow one way and towards magenta the other, by at most as much of the circle
// as was asked for.
TEST(Augment, ASmallTurnOfTheHueGoesBothWays) {
  Picture picture(1, 1, 3);
  picture.bytes = {255, 0, 0};
  const Augmentation turn{.height = 1, .width = 1, .hue = 0.1};
  int to_yellow = 0, to_magenta = 0;
  for (int sample = 0; sample < kDrawn; ++sample) {
    const Picture turned = Augment(picture, turn, SampleDraws(9, 0, sample));
    EXPECT_EQ(turned.bytes[0], 255);
    EXPECT_EQ(std::min(turned.bytes[1], turned.bytes[2]), 0);
    EXPECT_LE(std::max(turned.bytes[1], turned.bytes[2]), 153) << "0.6 of a sixth";
    to_yellow += turned.bytes[1] > 0 ? 1 : 0;
    to_magenta += turned.bytes[2] > 0 ? 1 : 0;
  }
  EXPECT_NEAR(to_yellow, kDrawn / 2, 40);
  EXPECT_NEAR(to_magenta, kDrawn / 2, 40);
}

// Every colour is itself after no turn, so what a turn rounds is less than a step.
TEST(Augment, AHardlyTurnedHueIsTheColour) {
  Picture picture(64, 64, 3);
  for (size_t i = 0; i < picture.bytes.size(); ++i) {
    picture.bytes[i] = static_cast<uint8_t>(i * 2654435761U >> 16);
  }
  const Augmentation turn{.height = 64, .width = 64, .hue = 1e-9};
  EXPECT_EQ(Augment(picture, turn, SampleDraws(9, 0, 0)), picture);
}

TEST(Augment, GreyHasNoHue) {
  const Picture picture = Numbered(4, 5);
  const Augmentation turn{.height = 4, .width = 5, .hue = 0.5};
  EXPECT_EQ(Augment(picture, turn, SampleDraws(9, 0, 0)), picture);
}

// Switching one thing on leaves the draws of the others.
TEST(Augment, EachChangeHasDrawsOfItsOwn) {
  const Picture picture = Coloured(6, 6);
  const Augmentation flip{.height = 6, .width = 6, .flip = true};
  const Augmentation both{.height = 6, .width = 6, .padding = 2, .flip = true};
  const Augmentation shift{.height = 6, .width = 6, .padding = 2};
  for (int sample = 0; sample < 50; ++sample) {
    const SampleDraws draws(11, 4, sample);
    const bool mirrored = Augment(picture, flip, draws) != picture;
    Picture expected = Augment(picture, shift, draws);
    if (mirrored) {
      for (int64_t y = 0; y < 6; ++y) {
        for (int64_t x = 0; x < 3; ++x) {
          std::swap_ranges(expected.row(y) + 3 * x, expected.row(y) + 3 * x + 3,
                           expected.row(y) + 3 * (5 - x));
        }
      }
    }
    EXPECT_EQ(Augment(picture, both, draws), expected) << sample;
  }
}

TEST(PixelNumbers, AreNormalizedByChannel) {
  Picture picture(1, 2, 3);
  picture.bytes = {0, 255, 51, 255, 0, 102};
  std::vector<float> numbers(6);
  PixelNumbers(std::vector<double>{0.5, 0, 0.2}, std::vector<double>{0.5, 2, 1})
      .Convert(picture, numbers);
  EXPECT_THAT(numbers, ElementsAre(-1.0F, 0.5F, static_cast<float>(51 / 255.0 - 0.2), 1.0F, 0.0F,
                                   static_cast<float>(102 / 255.0 - 0.2)));
}

TEST(CutOut, ASquareBecomesZeroAndIsCutAtTheBorder) {
  const Augmentation cut{.height = 8, .width = 6, .cutout = 4};
  std::set<int64_t> sizes;
  for (int sample = 0; sample < kDrawn; ++sample) {
    std::vector<float> numbers(8 * 6 * 3, 1.0F);
    CutOut(cut, SampleDraws(2, 0, sample), 3, numbers);
    sizes.insert(std::count(numbers.begin(), numbers.end(), 0.0F));
  }
  EXPECT_EQ(*sizes.begin(), 3 * 2 * 2) << "its center is in the picture";
  EXPECT_EQ(*sizes.rbegin(), 3 * 4 * 4);
}

}  // namespace
}  // namespace stagecoach
