#include "stage/pictures/decode.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/pictures/picture_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Picture Decoded(const std::vector<uint8_t>& file, int64_t channels) {
  absl::StatusOr<Picture> picture = DecodePicture(file, channels);
  EXPECT_TRUE(picture.ok()) << picture.status();
  return picture.ok() ? *std::move(picture) : Picture();
}
std::string RefusalOf(const std::vector<uint8_t>& file, absl::StatusCode code) {
  const absl::Status status = DecodePicture(file, 3).status();
  EXPECT_EQ(status.code(), code) << status;
  return std::string(status.message());
}

// The largest and the mean difference of two pictures.
std::pair<int, double> DifferenceOf(const Picture& a, const Picture& b) {
  EXPECT_EQ(a.bytes.size(), b.bytes.size());
  int largest = 0;
  double sum = 0;
  for (size_t i = 0; i < std::min(a.bytes.size(), b.bytes.size()); ++i) {
    const int difference = std::abs(int{a.bytes[i]} - int{b.bytes[i]});
    largest = std::max(largest, difference);
    sum += difference;
  }
  return {largest, sum / static_cast<double>(a.bytes.size())};
}

void Progressive(jpeg_compress_struct* info) { jpeg_simple_progression(info); }

TEST(DecodePng, GivesBackWhatWasWritten) {
  for (const int64_t channels : {1, 3}) {
    const Picture picture = MadeUpPicture(9, 13, channels);
    EXPECT_EQ(Decoded(PngFile(picture), channels), picture);
  }
}

TEST(DecodePng, EveryFormBecomesBytesOfTheChannelsAskedFor) {
  const Picture colours = MadeUpPicture(5, 6, 3), grey = MadeUpPicture(5, 6, 1);
  std::vector<uint8_t> with_alpha, wide, wide_grey;
  for (size_t i = 0; i < grey.bytes.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) with_alpha.push_back(colours.bytes[3 * i + c]);
    with_alpha.push_back(static_cast<uint8_t>(i));
    wide_grey.push_back(grey.bytes[i]);
    wide_grey.push_back(0xff);
  }
  for (const uint8_t byte : colours.bytes) {
    wide.push_back(byte);
    wide.push_back(0x80);
  }
  EXPECT_EQ(Decoded(PngFile(5, 6, with_alpha, {.colours = PNG_COLOR_TYPE_RGB_ALPHA}), 3), colours);
  EXPECT_EQ(Decoded(PngFile(5, 6, wide, {.depth = 16}), 3), colours);
  EXPECT_EQ(Decoded(PngFile(5, 6, wide_grey, {.depth = 16, .colours = PNG_COLOR_TYPE_GRAY}), 1),
            grey);
  EXPECT_EQ(Decoded(PngFile(5, 6, colours.bytes, {.interlaced = true}), 3), colours);
  const PngForm palette{
      .depth = 1, .colours = PNG_COLOR_TYPE_PALETTE, .palette = {{1, 2, 3}, {200, 100, 50}}};
  EXPECT_EQ(Decoded(PngFile(1, 3, {0b10100000}, palette), 3).bytes,
            (std::vector<uint8_t>{200, 100, 50, 1, 2, 3, 200, 100, 50}));
  EXPECT_EQ(
      Decoded(PngFile(1, 3, {0b10100000}, {.depth = 1, .colours = PNG_COLOR_TYPE_GRAY}), 1).bytes,
      (std::vector<uint8_t>{255, 0, 255}));
}

TEST(DecodePng, WhatIsTransparentKeepsItsColour) {
  const Picture colours = MadeUpPicture(5, 6, 3), grey = MadeUpPicture(5, 6, 1);
  std::vector<uint8_t> grey_with_alpha;
  for (size_t i = 0; i < grey.bytes.size(); ++i) {
    grey_with_alpha.push_back(grey.bytes[i]);
    grey_with_alpha.push_back(static_cast<uint8_t>(9 * i));
  }
  EXPECT_EQ(Decoded(PngFile(5, 6, grey_with_alpha, {.colours = PNG_COLOR_TYPE_GRAY_ALPHA}), 1),
            grey);
  EXPECT_EQ(Decoded(PngFile(5, 6, colours.bytes, {.transparent = 17}), 3), colours);
  EXPECT_EQ(Decoded(PngFile(5, 6, grey.bytes,
                            {.colours = PNG_COLOR_TYPE_GRAY, .transparent = grey.bytes[3]}),
                    1),
            grey);
  const PngForm palette{.depth = 1,
                        .colours = PNG_COLOR_TYPE_PALETTE,
                        .palette = {{1, 2, 3}, {200, 100, 50}},
                        .palette_alpha = {0, 128}};
  EXPECT_EQ(Decoded(PngFile(1, 3, {0b10100000}, palette), 3).bytes,
            (std::vector<uint8_t>{200, 100, 50, 1, 2, 3, 200, 100, 50}));
}

// libpng by itself reads a million at most.
TEST(DecodePng, ASideMayBeAsLongAsThePictureMayHavePixels) {
  const Picture line = MadeUpPicture(1, 1200000, 1), column = MadeUpPicture(1200000, 1, 1);
  EXPECT_EQ(Decoded(PngFile(line), 1), line);
  EXPECT_EQ(Decoded(PngFile(column), 1), column);
}

TEST(DecodePicture, GreyIsRepeatedAndColoursBecomeGreyByTheirBrightness) {
  const Picture grey = MadeUpPicture(4, 4, 1), colours = MadeUpPicture(4, 4, 3);
  const Picture repeated = Decoded(PngFile(grey), 3);
  ASSERT_EQ(repeated.channels, 3);
  for (size_t i = 0; i < repeated.bytes.size(); ++i) {
    EXPECT_EQ(repeated.bytes[i], grey.bytes[i / 3]);
  }
  const Picture bright = Decoded(PngFile(colours), 1);
  ASSERT_EQ(bright.channels, 1);
  for (size_t i = 0; i < bright.bytes.size(); ++i) {
    const uint8_t* const pixel = colours.bytes.data() + 3 * i;
    EXPECT_NEAR(bright.bytes[i], 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2], 0.51);
  }
}

TEST(DecodeJpeg, ComesCloseToWhatWasWritten) {
  const auto best = [](jpeg_compress_struct* info) { jpeg_set_quality(info, 98, TRUE); };
  for (const int64_t channels : {1, 3}) {
    const Picture picture = MadeUpPicture(37, 50, channels);
    const Picture decoded = Decoded(JpegFile(picture, best), channels);
    ASSERT_EQ(decoded.height, 37);
    ASSERT_EQ(decoded.width, 50);
    EXPECT_LT(DifferenceOf(decoded, picture).second, 4);
  }
}

// A progressive file holds the same numbers in another order.
TEST(DecodeJpeg, AProgressiveFileGivesTheSamePicture) {
  const Picture picture = MadeUpPicture(33, 47, 3);
  EXPECT_EQ(Decoded(JpegFile(picture, Progressive), 3), Decoded(JpegFile(picture), 3));
}

// What the library computes by vectors is what it computes without: it looks at this variable in
// every thread anew.
TEST(DecodeJpeg, GivesTheSameBytesWithoutVectorInstructions) {
  const std::vector<std::pair<int, int>> samplings = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}};
  for (const std::pair<int, int>& sampling : samplings) {
    const auto sampled = [&](jpeg_compress_struct* info) {
      info->comp_info[0].h_samp_factor = sampling.first;
      info->comp_info[0].v_samp_factor = sampling.second;
    };
    const std::vector<uint8_t> file = JpegFile(MadeUpPicture(61, 83, 3), sampled);
    Picture plain;
    setenv("JSIMD_FORCENONE", "1", 1);
    std::thread([&] { plain = Decoded(file, 3); }).join();
    unsetenv("JSIMD_FORCENONE");
    Picture fast;
    std::thread([&] { fast = Decoded(file, 3); }).join();
    EXPECT_EQ(fast, plain) << sampling.first << " " << sampling.second;
  }
}

// 255 is no ink, with Adobe's mark and without: so Pillow reads them, and so are those without it
// written.
TEST(DecodeJpeg, InkBecomesColours) {
  Picture ink(8, 8, 4);
  for (size_t i = 0; i < ink.bytes.size(); i += 4) {
    const uint8_t cyan_and_some_black[] = {0, 255, 255, 200};
    std::copy_n(cyan_and_some_black, 4, ink.bytes.data() + i);
  }
  const auto unmarked = [](jpeg_compress_struct* info) { info->write_Adobe_marker = FALSE; };
  const Picture cyan = Decoded(JpegFile(ink), 3);
  EXPECT_NEAR(cyan.bytes[0], 0, 2);
  EXPECT_NEAR(cyan.bytes[1], 200, 2);
  EXPECT_NEAR(cyan.bytes[2], 200, 2);
  EXPECT_EQ(Decoded(JpegFile(ink, unmarked), 3), cyan);
}

TEST(DecodePicture, AnotherFormatIsNamedByItsFirstBytes) {
  const auto refusal = [](const std::vector<uint8_t>& file) {
    return RefusalOf(file, absl::StatusCode::kInvalidArgument);
  };
  EXPECT_EQ(refusal({'G', 'I', 'F', '8', '9', 'a'}),
            "a GIF picture, not JPEG, PNG, TIFF or WebP; give one of them");
  std::vector<uint8_t> bmp(54);
  bmp[0] = 'B', bmp[1] = 'M', bmp[14] = 40;
  EXPECT_THAT(refusal(bmp), HasSubstr("BMP, not JPEG"));
  EXPECT_THAT(refusal({0, 0, 0, 24, 'f', 't', 'y', 'p', 'h', 'e', 'i', 'c'}),
              HasSubstr("HEIC, not JPEG"));
  EXPECT_THAT(refusal({1, 2, 3, 4, 5}),
              HasSubstr("a file that begins with \"01020304\", not JPEG"));
  EXPECT_THAT(refusal({}), HasSubstr("an empty file, not JPEG"));
}

// A header of a few bytes says 10 GB: nothing is allocated by it.
TEST(DecodePicture, APictureThatIsTooLargeIsRefusedByItsHeader) {
  std::vector<uint8_t> jpeg = JpegFile(MadeUpPicture(8, 8, 3));
  const auto frame = FrameOf(jpeg);
  for (const int at : {5, 7}) {
    frame[at] = 60000 >> 8;
    frame[at + 1] = 60000 & 0xff;
  }
  const auto refused = AllOf(HasSubstr("a picture of 60000 x 60000 pixels; at most 67108864"));
  EXPECT_THAT(RefusalOf(jpeg, absl::StatusCode::kInvalidArgument), refused);

  EXPECT_THAT(RefusalOf(PngHeader(60000, 60000), absl::StatusCode::kInvalidArgument), refused);
  EXPECT_THAT(RefusalOf(PngHeader(1, 70000000), absl::StatusCode::kInvalidArgument),
              HasSubstr("a picture of 70000000 x 1 pixels; at most 67108864"));
  EXPECT_TRUE(DecodePicture(PngFile(MadeUpPicture(8, 8, 1)), 1, 64).ok());
  EXPECT_FALSE(DecodePicture(PngFile(MadeUpPicture(8, 8, 1)), 1, 63).ok());
}

// Each scan goes through the whole picture, however few bytes it has.
TEST(DecodeJpeg, AFileOfVeryManyScansIsRefused) {
  std::vector<jpeg_scan_info> scans = {
      {.comps_in_scan = 3, .component_index = {0, 1, 2}, .Ss = 0, .Se = 0, .Ah = 0, .Al = 0}};
  for (int component = 0; component < 3; ++component) {
    for (int k = 1; k < 64; ++k) {
      scans.push_back(
          {.comps_in_scan = 1, .component_index = {component}, .Ss = k, .Se = k, .Ah = 0, .Al = 0});
    }
  }
  const auto scanned = [&scans](jpeg_compress_struct* info) {
    info->scan_info = scans.data();
    info->num_scans = static_cast<int>(scans.size());
  };
  EXPECT_EQ(
      RefusalOf(JpegFile(MadeUpPicture(16, 16, 3), scanned), absl::StatusCode::kInvalidArgument),
      "JPEG: more than 100 scans; write it as a baseline JPEG of 8 bits");
}

TEST(DecodeJpeg, AFormThatIsNotReadIsNotCalledDamaged) {
  std::vector<uint8_t> of_12_bits = JpegFile(MadeUpPicture(16, 16, 3)), hierarchical = of_12_bits;
  FrameOf(of_12_bits)[4] = 12;
  FrameOf(hierarchical)[1] = 0xc5;
  for (const std::vector<uint8_t>& file : {of_12_bits, hierarchical}) {
    EXPECT_THAT(RefusalOf(file, absl::StatusCode::kInvalidArgument),
                AllOf(HasSubstr("JPEG: Unsupported JPEG"),
                      HasSubstr("; write it as a baseline JPEG of 8 bits")));
  }
}

// 64 x 64 pixels of three samples: a byte each in the picture, and 2 in the library until the last
// scan is read.
TEST(DecodeJpeg, TheCoefficientsOfAProgressiveFileAreCounted) {
  const auto full = [](jpeg_compress_struct* info) {
    info->comp_info[0].h_samp_factor = info->comp_info[0].v_samp_factor = 1;
  };
  const auto full_progressive = [&full](jpeg_compress_struct* info) {
    full(info);
    Progressive(info);
  };
  const Picture picture = MadeUpPicture(64, 64, 3);
  constexpr int64_t kPixels = int64_t{64} * 64, kEnough = kPixels * 9 / kDecodingBytes + 1;
  EXPECT_TRUE(DecodePicture(JpegFile(picture, full), 3, kPixels).ok());
  const std::vector<uint8_t> file = JpegFile(picture, full_progressive);
  EXPECT_TRUE(DecodePicture(file, 3, kEnough).ok());
  const absl::Status status = DecodePicture(file, 3, kEnough - 1).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("a progressive picture of 64 x 64 pixels needs 36864 bytes"),
                    HasSubstr("write it as a baseline JPEG, or make it smaller")));
  // With colours of half the size it has 2 + 1 bytes, as the picture.
  EXPECT_TRUE(DecodePicture(JpegFile(picture, Progressive), 3, kPixels).ok());
}

// Of the forms that need most: all coefficients and the picture; ink and its colours; rows of one
// pixel.
TEST(DecodePicture, TakesNoMoreMemoryThanItSays) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory would be counted";
#endif
  const auto full_progressive = [](jpeg_compress_struct* info) {
    info->comp_info[0].h_samp_factor = info->comp_info[0].v_samp_factor = 1;
    Progressive(info);
  };
  constexpr int64_t kPixels = int64_t{2048} * 2048, kRows = int64_t{2} << 20;
  const struct {
    std::vector<uint8_t> file;
    int64_t channels, most_pixels;
  } rows[] = {
      {JpegFile(MadeUpPicture(2048, 2048, 3), full_progressive), 3,
       kPixels * 9 / kDecodingBytes + 1},
      {JpegFile(MadeUpPicture(2048, 2048, 4)), 3, kPixels},
      {PngFile(MadeUpPicture(kPixels, 1, 1)), 3, kPixels},
      {TiffFile(MadeUpPicture(2048, 2048, 3), {.orientation = 6}), 3, kPixels},
      {WebpFile(Picture(2048, 2048, 3)), 3, kPixels},  // quickly written
  };
  for (const auto& row : rows) {
    bool read = false;
    const int64_t peak =
        PeakBytesOf([&] { read = DecodePicture(row.file, row.channels, row.most_pixels).ok(); });
    EXPECT_TRUE(read);
    EXPECT_LT(peak, row.most_pixels * kDecodingBytes + kRows);
    EXPECT_GT(peak, kPixels) << "nothing is measured";
  }
}

class DamagedPicture : public testing::TestWithParam<int> {
 protected:
  std::vector<uint8_t> file() const {
    const Picture picture = MadeUpPicture(19, 23, 3);
    return GetParam() == 0   ? JpegFile(picture)
           : GetParam() == 1 ? JpegFile(picture, Progressive)
           : GetParam() == 2 ? PngFile(picture)
           : GetParam() == 3 ? TiffFile(picture)
           : GetParam() == 4 ? WebpFile(picture, /*lossless=*/true)
                             : WebpFile(picture, /*lossless=*/false);
  }
};

TEST_P(DamagedPicture, AFileThatIsCutOffAnywhereIsAnError) {
  const std::vector<uint8_t> whole = file();
  ASSERT_TRUE(DecodePicture(whole, 3).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    // Memory of its own, so that a read behind its end is seen.
    const std::vector<uint8_t> part(whole.begin(), whole.begin() + static_cast<int64_t>(size));
    const absl::Status status = DecodePicture(part, 3).status();
    ASSERT_FALSE(status.ok()) << size << " of " << whole.size();
    ASSERT_GT(status.message().size(), 8u) << status;
    ASSERT_TRUE(size <= 11 || absl::IsDataLoss(status)) << status;
  }
}

TEST_P(DamagedPicture, BytesThatAreFlippedGiveAPictureOrAnError) {
  const std::vector<uint8_t> whole = file();
  int refused = 0;
  constexpr int kFiles = 3000;
  for (uint64_t i = 0; i < kFiles; ++i) {
    std::vector<uint8_t> damaged = whole;
    const RandomStream stream{.seed = 7, .step = static_cast<uint32_t>(i)};
    for (uint32_t flip = 0; flip <= i % 4; ++flip) {
      damaged[RandomBits(stream, 2 * flip) % damaged.size()] ^=
          static_cast<uint8_t>(1 + RandomBits(stream, 2 * flip + 1) % 255);
    }
    const absl::StatusOr<Picture> picture = DecodePicture(damaged, 3, 1 << 20);
    refused += picture.ok() ? 0 : 1;
    if (picture.ok()) {
      ASSERT_EQ(picture->bytes.size(),
                static_cast<size_t>(picture->height * picture->width * picture->channels));
    }
  }
  EXPECT_GT(refused, kFiles / 20);
}

std::string FormatName(const testing::TestParamInfo<int>& info) {
  const char* const names[] = {"Jpeg", "ProgressiveJpeg", "Png", "Tiff", "LosslessWebp", "Webp"};
  return names[info.param];
}

INSTANTIATE_TEST_SUITE_P(Formats, DamagedPicture, testing::Range(0, 6), FormatName);

}  // namespace
}  // namespace stagecoach
