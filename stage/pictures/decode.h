// Decoding of pictures in files: JPEG by libjpeg-turbo, PNG by libpng, told apart by their first bytes.
//
// A file gives the same bytes on every machine. JPEG: the accurate integer inverse transform (JDCT_ISLOW) and smooth
// upsampling, whose vector code computes what the plain code does. Channels become those that are asked for, by integer
// arithmetic: grey is repeated; colours become grey by (19595 R + 38470 G + 7471 B + 32768) / 65536; CMYK becomes
// R = 255 - K - C * (255 - K) / 255 and so on. Alpha is dropped, of 16 bits the upper 8 are kept, a palette is looked up.
// Gamma, colour profiles and the orientation that a camera notes are not looked at. So does Pillow's convert("RGB").
//
// Threads: pure functions, any thread; a call needs the picture's memory twice at most, and no more than
//          `most_pixels` allow: they are compared before anything is allocated.
// Errors:  INVALID_ARGUMENT: neither format, too large, or of a form that is not read, with the remedy. DATA_LOSS: cut
//          off or damaged, with what the library says. A file that is not whole gives no picture.
#ifndef STAGECOACH_STAGE_PICTURES_DECODE_H_
#define STAGECOACH_STAGE_PICTURES_DECODE_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "stage/pictures/picture.h"

namespace stagecoach {

// 8192 x 8192, 192 MiB of colours.
inline constexpr int64_t kMostPicturePixels = int64_t{1} << 26;

// channels: 1 or 3. file: all of it.
absl::StatusOr<Picture> DecodePicture(std::span<const uint8_t> file, int64_t channels,
                                      int64_t most_pixels = kMostPicturePixels);

// Of 1, 3 or 4 (ink) channels with 1 or 3, as above.
Picture WithChannels(Picture picture, int64_t channels);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_PICTURES_DECODE_H_
