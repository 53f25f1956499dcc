// Pictures and masks that we write are what the decoder reads again.
#include "stage/pictures/encode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/pictures/decode.h"
#include "stage/pictures/picture_testing.h"

namespace stagecoach {
namespace {

TEST(EncodePng, GivesTheSamePixelsBack) {
  for (const int64_t channels : {1, 3}) {
    const Picture picture = MadeUpPicture(7, 13, channels);
    const auto file = EncodePng(picture);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(*DecodePicture(*file, channels), picture);
  }
}

TEST(EncodeMask, KeepsTheIdsAndShowsThemInColours) {
  Picture mask(3, 5, 1);
  for (size_t i = 0; i < mask.bytes.size(); ++i) mask.bytes[i] = static_cast<uint8_t>(i % 3);
  const auto file = EncodeMask(mask, 3);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*DecodeMask(*file), mask);
  const Picture shown = *DecodePicture(*file, 3);
  EXPECT_THAT(std::vector<uint8_t>(shown.bytes.begin(), shown.bytes.begin() + 9),
              testing::ElementsAre(0, 0, 0, 128, 0, 0, 0, 128, 0));
  Picture all(16, 16, 1);
  for (size_t i = 0; i < all.bytes.size(); ++i) all.bytes[i] = static_cast<uint8_t>(i);
  EXPECT_EQ(*DecodeMask(*EncodeMask(all, 256)), all);
}

// VOC's masks: 1 aeroplane, 12 dog, 20 monitor, 255 border.
TEST(MaskColour, IsThatOfPascalVoc) {
  EXPECT_THAT(MaskColour(1), testing::ElementsAre(128, 0, 0));
  EXPECT_THAT(MaskColour(12), testing::ElementsAre(64, 0, 128));
  EXPECT_THAT(MaskColour(20), testing::ElementsAre(0, 64, 128));
  EXPECT_THAT(MaskColour(255), testing::ElementsAre(224, 224, 192));
}

}  // namespace
}  // namespace stagecoach
