// Decoding of pictures in files: JPEG by libjpeg-turbo, PNG by libpng, TIFF by libtiff and WebP by
// libwebp. The first bytes of a file tell the format.
//
// With one version of each library a file gives the same bytes on every machine, with or without
// vector instructions. JPEG goes through the accurate integer inverse transform (JDCT_ISLOW) and
// smooth upsampling, all of it in integers. Another version may upsample in another way.
//
// Colours are those of Pillow's convert("RGB"), which golden_test.cc compares. Integer arithmetic
// makes the wanted channels. Grey is repeated. Colours become grey by (19595 R + 38470 G + 7471 B +
// 32768) / 65536. CMYK becomes R = 255 - K - C * (255 - K) / 255 and so on. A CMYK JPEG stores 255
// minus the ink, with and without Adobe's marker. Alpha is dropped, a palette is looked up. Gamma
// and colour profiles are not looked at. Of 16 bits the upper 8 are kept. Pillow does so for
// colours. It cuts grey of 16 bits at 255, which would make most of it white. A TIFF is turned by
// its orientation; of other formats DecodeUpright does that.
//
// Threads: pure functions, any thread.
// Memory:  at most kDecodingBytes for each of `most_pixels`, the result included. Some rows come on
//          top; for a TIFF its tiles, of up to 8 bytes a pixel. The memory that a header asks for
//          is compared with that before it is allocated. A JPEG of several scans, as progressive
//          ones are, needs 2 bytes for each sample that it stores, beside its picture. So with full
//          colours it may have 7/9 of `most_pixels`.
// Errors:  INVALID_ARGUMENT, with the remedy: another format, too large, more than 100 scans, or a
//          form that is not read (JPEG of 12 bits, lossless; an animated WebP; TIFF of floats or
//          L*a*b*). DATA_LOSS, with the library's message: cut off or damaged. A file that is not
//          whole gives no picture.
#ifndef STAGECOACH_STAGE_PICTURES_DECODE_H_
#define STAGECOACH_STAGE_PICTURES_DECODE_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "stage/pictures/picture.h"

namespace stagecoach {

// 8192 x 8192, 192 MiB of colours.
inline constexpr int64_t kMostPicturePixels = int64_t{1} << 26;

// 4 of ink and the 3 colours that they become.
inline constexpr int64_t kDecodingBytes = 7;

// channels: 1 or 3. file: all of it.
absl::StatusOr<Picture> DecodePicture(std::span<const uint8_t> file, int64_t channels,
                                      int64_t most_pixels = kMostPicturePixels);
// The same, turned by the orientation that the file notes (stage/pictures/orientation.h).
absl::StatusOr<Picture> DecodeUpright(std::span<const uint8_t> file, int64_t channels,
                                      int64_t most_pixels = kMostPicturePixels);

// By its ending, in any case: .jpg, .jpeg, .jpe, .jfif, .png, .tif, .tiff, .webp.
bool IsPictureName(const std::string& name);

// A mask: a PNG of grey or with a palette, of 8 bits a pixel or less. Its stored numbers, grey or
// the palette's indexes, are ids. One channel. Errors: as above.
absl::StatusOr<Picture> DecodeMask(std::span<const uint8_t> file,
                                   int64_t most_pixels = kMostPicturePixels);
// What a PNG's header says of its size. INVALID_ARGUMENT: no PNG; DATA_LOSS: its header is cut off.
// The first kPngHeadBytes of the file are enough.
struct PictureSize {
  int64_t height = 0, width = 0;
  friend bool operator==(const PictureSize&, const PictureSize&) = default;
};
inline constexpr size_t kPngHeadBytes = 24;
absl::StatusOr<PictureSize> PngSize(std::span<const uint8_t> head);

// Of 1, 3 or 4 (ink) channels with 1 or 3, as above.
Picture WithChannels(Picture picture, int64_t channels);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_PICTURES_DECODE_H_
