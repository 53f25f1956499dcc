#include "stage/pictures/resample.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/files/hash.h"
#include "gtest/gtest.h"
#include "stage/pictures/picture_testing.h"

namespace stagecoach {
namespace {

// Numbers that any program can make again.
Picture FormulaPicture(int64_t height, int64_t width, int64_t channels) {
  Picture picture(height, width, channels);
  size_t i = 0;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        picture.bytes[i++] = static_cast<uint8_t>(x * x * 7 + y * 13 + x * y * 3 + c * 50 +
                                                  (x * 31 + y * 17) % 29 * 5);
      }
    }
  }
  return picture;
}

std::string DigestOf(const Picture& picture) {
  Sha256 digest;
  digest.Update(std::as_bytes(std::span(picture.bytes)));
  return digest.Hex().substr(0, 16);
}

PictureBox AllOf(const Picture& picture) {
  return {.height = picture.height, .width = picture.width};
}

// Digests of what Pillow 13.0.0's resize((width, height), BILINEAR) gives for the same numbers.
TEST(Resample, GivesPillowsBytes) {
  const struct {
    int64_t height, width, new_height, new_width;
    const char *colours, *grey;
  } rows[] = {
      {40, 60, 20, 30, "a6a4eaa5e1deb172", "5d0312137ae478b9"},
      {40, 60, 13, 7, "8ae32934c0bdb467", "3e005d4c5e548d9e"},
      {17, 23, 64, 48, "1f40845fe0b482f4", "af7a37895f4975fb"},
      {100, 30, 33, 30, "ecdc875f93ce2a34", "f1528549891e0ee0"},
      {50, 50, 50, 21, "b77fee39a589e2fd", "a0753cb2d87c28bf"},
      {7, 300, 5, 11, "0e5cc85bb6583124", "a04b9157489fb288"},
  };
  for (const auto& row : rows) {
    const Picture colours = FormulaPicture(row.height, row.width, 3);
    const Picture grey = FormulaPicture(row.height, row.width, 1);
    EXPECT_EQ(DigestOf(Resample(colours, AllOf(colours), row.new_height, row.new_width)),
              row.colours)
        << row.height << "x" << row.width;
    EXPECT_EQ(DigestOf(Resample(grey, AllOf(grey), row.new_height, row.new_width)), row.grey);
  }
}

// Symptom: random parts of images of two channels were half black, with the rest from wrong places.
TEST(Resample, EveryChannelIsResampledAsIfAlone) {
  for (const int64_t channels : {2, 3, 4, 5}) {
    const Picture all = FormulaPicture(9, 14, channels);
    const Picture resampled = Resample(all, AllOf(all), 6, 5);
    for (int64_t c = 0; c < channels; ++c) {
      Picture alone(9, 14, 1);
      for (size_t i = 0; i < alone.bytes.size(); ++i) {
        alone.bytes[i] = all.bytes[i * static_cast<size_t>(channels) + static_cast<size_t>(c)];
      }
      const Picture expected = Resample(alone, AllOf(alone), 6, 5);
      for (size_t i = 0; i < expected.bytes.size(); ++i) {
        ASSERT_EQ(resampled.bytes[i * static_cast<size_t>(channels) + static_cast<size_t>(c)],
                  expected.bytes[i])
            << channels << " channels, channel " << c << ", pixel " << i;
      }
    }
  }
}

TEST(Resample, LooksAtNothingOutsideOfItsBox) {
  const Picture picture = FormulaPicture(30, 40, 3);
  const PictureBox box{.top = 5, .left = 7, .height = 12, .width = 20};
  const Picture part = Crop(picture, box);
  EXPECT_EQ(part.row(0)[0], picture.row(5)[21]);
  EXPECT_EQ(Resample(picture, box, 9, 11), Resample(part, AllOf(part), 9, 11));
  EXPECT_EQ(Resample(picture, box, 12, 20), part);
}

TEST(Resample, OneColourStaysThatColour) {
  Picture picture(9, 31, 3);
  for (uint8_t& byte : picture.bytes) byte = 255;
  for (const uint8_t byte : Resample(picture, AllOf(picture), 23, 5).bytes) EXPECT_EQ(byte, 255);
}

TEST(FitPicture, TakesTheMiddleOfThePictureWhoseShorterSideFits) {
  const Picture wide = FormulaPicture(20, 33, 1), tall = FormulaPicture(33, 20, 1);
  const Picture resized = Resample(wide, AllOf(wide), 10, 16);
  EXPECT_EQ(FitByShorterSide(wide, 10, 8, 8),
            Crop(resized, {.top = 1, .left = 4, .height = 8, .width = 8}));
  EXPECT_EQ(FitByShorterSide(tall, 10, 10, 10),
            Crop(Resample(tall, AllOf(tall), 16, 10), {.top = 3, .height = 10, .width = 10}));
  EXPECT_EQ(FitToCover(wide, 10, 10),
            Crop(resized, {.top = 0, .left = 3, .height = 10, .width = 10}));
  EXPECT_EQ(FitToCover(wide, 20, 33), wide);
  for (int64_t height = 1; height < 9; ++height) {
    for (int64_t width = 1; width < 9; ++width) {
      const Picture fitted = FitToCover(wide, height, width);
      EXPECT_TRUE(fitted.height == height && fitted.width == width) << height << "x" << width;
    }
  }
}

TEST(FitPicture, MakesOnlyTheBytesOfTheWholeThatItKeeps) {
  for (const auto& [high, wide] : {std::pair(1, 32), {32, 1}, {5, 90}, {90, 7}, {40, 41}, {3, 3}}) {
    const Picture picture = FormulaPicture(high, wide, 3);
    for (const int64_t shorter : {2, 3, 7, 20, 41}) {
      const bool tall = wide <= high;
      const int64_t rows = tall ? shorter * high / wide : shorter;
      const int64_t columns = tall ? shorter : shorter * wide / high;
      const Picture whole = Resample(picture, AllOf(picture), rows, columns);
      for (int64_t top = 0; top < rows; top += 1 + rows / 4) {
        const PictureBox part{
            .top = top, .left = columns / 3, .height = rows - top, .width = columns - columns / 3};
        EXPECT_EQ(ResamplePart(picture, AllOf(picture), rows, columns, part), Crop(whole, part))
            << high << "x" << wide << " to " << rows << "x" << columns;
      }
    }
  }
}

// Whole, they would be of 2048 x 65536 pixels, 128 MiB, of which 64 x 64 are kept.
TEST(FitPicture, ALongPictureTakesNoMoreMemoryThanWhatIsKept) {
  constexpr int64_t kMost = int64_t{16} << 20;
  EXPECT_GT(PeakBytesOf([] { FormulaPicture(8192, 8192, 1); }), 3 * kMost) << "nothing is measured";
  for (const auto& [high, wide] : {std::pair(1, 32), {32, 1}, {1, 1 << 18}, {1 << 18, 1}}) {
    const Picture picture = FormulaPicture(high, wide, 1);
    Picture fitted;
    EXPECT_LT(PeakBytesOf([&] { fitted = FitByShorterSide(picture, 2048, 64, 64); }), kMost)
        << high << "x" << wide;
    EXPECT_EQ(fitted.height, 64);
    EXPECT_EQ(fitted.width, 64);
  }
  EXPECT_EQ(FitToCover(FormulaPicture(1, 1 << 18, 1), 32, 32).width, 32);
}

}  // namespace
}  // namespace stagecoach
