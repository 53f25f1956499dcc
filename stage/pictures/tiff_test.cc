// TIFF and WebP in forms that Pillow does not write; golden_test.cc has the others.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/pictures/decode.h"
#include "stage/pictures/picture_testing.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

Picture ReadTiffFile(const std::vector<uint8_t>& file, int64_t channels) {
  const auto picture = DecodePicture(file, channels);
  EXPECT_TRUE(picture.ok()) << picture.status();
  return picture.ok() ? *picture : Picture();
}

TEST(DecodeTiff, StripsTilesAndPlanesGiveTheSamePicture) {
  for (const int64_t channels : {1, 3}) {
    const Picture picture = MadeUpPicture(37, 50, channels);
    for (const int tile : {0, 16}) {
      for (const bool by_planes : {false, true}) {
        for (const int packing : {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE}) {
          EXPECT_EQ(ReadTiffFile(TiffFile(picture, {tile, by_planes, packing}), channels), picture)
              << tile << " " << by_planes << " " << packing;
        }
      }
    }
  }
}

// Row 0 of the file is the picture's right side where orientation is 6, and so on.
TEST(DecodeTiff, IsTurnedByItsOrientation) {
  Picture picture(1, 2, 1);
  picture.bytes = {10, 20};
  const Picture turned = ReadTiffFile(TiffFile(picture, {.orientation = 8}), 1);
  EXPECT_EQ(turned.height, 2);
  EXPECT_EQ(turned.bytes, (std::vector<uint8_t>{20, 10}));
  EXPECT_EQ(ReadTiffFile(TiffFile(picture, {.orientation = 3}), 1).bytes,
            (std::vector<uint8_t>{20, 10}));
}

TEST(DecodeTiff, AFormThatIsNotReadIsNamedWithTheRemedy) {
  std::vector<uint8_t> file = TiffFile(MadeUpPicture(4, 4, 3));
  const std::string tag = {0x06, 0x01, 0x03, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x00};  // RGB
  const auto at = std::search(file.begin(), file.end(), tag.begin(), tag.end());
  ASSERT_NE(at, file.end());
  at[8] = 8;  // L*a*b*
  const absl::Status status = DecodePicture(file, 3).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("TIFF: 3 samples of 8 bits, colours 8, number format 1 is not read; write"));
}

TEST(DecodeTiff, SizesAreJudgedBeforeAnythingIsAllocated) {
  const std::vector<uint8_t> file = TiffFile(MadeUpPicture(8, 8, 3));
  EXPECT_TRUE(DecodePicture(file, 3, 64).ok());
  EXPECT_THAT(std::string(DecodePicture(file, 3, 63).status().message()),
              HasSubstr("TIFF: a picture of 8 x 8 pixels; at most 63 are read"));
  EXPECT_THAT(
      std::string(DecodePicture(WebpFile(MadeUpPicture(8, 8, 3)), 3, 63).status().message()),
      HasSubstr("WebP: a picture of 8 x 8 pixels; at most 63 are read"));
}

}  // namespace
}  // namespace stagecoach
