// Masks: numbers as they are stored, and moved as their pictures are.
#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/pictures/augment.h"
#include "stage/pictures/decode.h"
#include "stage/pictures/picture_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(DecodeMask, GivesTheNumbersAsTheyAreStored) {
  Picture mask(2, 3, 1);
  mask.bytes = {0, 1, 2, 7, 255, 1};
  const auto read = DecodeMask(PngFile(mask));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, mask);
}

// As a picture it would be refused nothing: colours are looked up, and 0 and 1 become black and
// white.
TEST(DecodeMask, OfAPaletteOrOfFewBitsIsNotItsColours) {
  const std::vector<uint8_t> packed = {0b01100000};  // 0, 1, 1 in one bit each
  const std::vector<png_color> palette = {{200, 10, 10}, {10, 200, 10}};
  const auto grey = DecodeMask(PngFile(1, 3, packed, {.depth = 1, .colours = PNG_COLOR_TYPE_GRAY}));
  ASSERT_TRUE(grey.ok()) << grey.status();
  EXPECT_THAT(grey->bytes, ElementsAre(0, 1, 1));
  const auto indexed = DecodeMask(
      PngFile(1, 3, packed, {.depth = 1, .colours = PNG_COLOR_TYPE_PALETTE, .palette = palette}));
  ASSERT_TRUE(indexed.ok()) << indexed.status();
  EXPECT_THAT(indexed->bytes, ElementsAre(0, 1, 1));
}

TEST(DecodeMask, OfColoursIsRefused) {
  EXPECT_THAT(std::string(DecodeMask(PngFile(MadeUpPicture(2, 2, 3))).status().message()),
              HasSubstr("a mask with colours"));
  EXPECT_THAT(std::string(DecodeMask(JpegFile(MadeUpPicture(8, 8, 1))).status().message()),
              HasSubstr("a mask has to be a PNG, whose numbers are kept as they are, and this is a "
                        "JPEG picture"));
}

TEST(DecodeMask, CutAnywhereIsNoMask) {
  const std::vector<uint8_t> file = PngFile(MadeUpPicture(5, 4, 1));
  for (size_t bytes = 0; bytes < file.size(); ++bytes) {
    EXPECT_FALSE(DecodeMask(std::span(file).first(bytes)).ok()) << bytes;
  }
}

TEST(PngSize, IsReadOfTheHeaderAlone) {
  const std::vector<uint8_t> file = PngFile(MadeUpPicture(5, 400, 1));
  const auto size = PngSize(std::span(file).first(kPngHeadBytes));
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(*size, (PictureSize{.height = 5, .width = 400}));
  EXPECT_FALSE(PngSize(std::span(file).first(kPngHeadBytes - 1)).ok());
}

TEST(NearestPart, TakesThePixelThatACenterLiesIn) {
  Picture row(1, 6, 1);
  row.bytes = {0, 1, 2, 3, 4, 5};
  const auto resized = [&row](int64_t width) {
    return NearestPart(row, {.height = 1, .width = 6}, 1, width, {.height = 1, .width = width})
        .bytes;
  };
  EXPECT_THAT(resized(3), ElementsAre(1, 3, 5));
  EXPECT_THAT(resized(2), ElementsAre(1, 4));
  EXPECT_THAT(resized(9), ElementsAre(0, 1, 1, 2, 3, 3, 4, 5, 5));
  EXPECT_THAT(NearestPart(row, {.left = 2, .height = 1, .width = 3}, 1, 6,
                          {.left = 1, .height = 1, .width = 3})
                  .bytes,
              ElementsAre(2, 3, 3));
}

// A mask that is constant in blocks as large as what a random part mixes shows where each pixel
// came from.
TEST(AugmentMask, GoesWhereItsPictureGoes) {
  Picture picture(64, 64, 1), mask(64, 64, 1);
  for (int64_t y = 0; y < 64; ++y) {
    for (int64_t x = 0; x < 64; ++x) {
      picture.row(y)[x] = static_cast<uint8_t>(2 * x + y);
      mask.row(y)[x] = static_cast<uint8_t>(2 * x + y);
    }
  }
  const Augmentation all{
      .height = 32, .width = 32, .least_area = 0.3, .padding = 3, .flip = true, .brightness = 0};
  for (int sample = 0; sample < 50; ++sample) {
    const SampleDraws draws(5, 1, static_cast<uint64_t>(sample));
    const Picture a = Augment(picture, all, draws), m = AugmentMask(mask, all, 0, draws);
    for (size_t i = 0; i < a.bytes.size(); ++i) {
      // A pixel's mean lies within what it is made of: some pixels to each side.
      ASSERT_NEAR(a.bytes[i], m.bytes[i], 8) << sample << " " << i;
    }
  }
}

TEST(AugmentMask, ShowsTheBorderItIsGiven) {
  const Picture mask(4, 4, 1);
  const Augmentation shift{.height = 4, .width = 4, .padding = 4};
  int border = 0;
  for (uint64_t sample = 0; sample < 20; ++sample) {
    const Picture moved = AugmentMask(mask, shift, 9, SampleDraws(1, 0, sample));
    border += static_cast<int>(std::count(moved.bytes.begin(), moved.bytes.end(), 9));
    EXPECT_EQ(std::count(moved.bytes.begin(), moved.bytes.end(), 9) +
                  std::count(moved.bytes.begin(), moved.bytes.end(), 0),
              16);
  }
  EXPECT_GT(border, 0);
}

}  // namespace
}  // namespace stagecoach
