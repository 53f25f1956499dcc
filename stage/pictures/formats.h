// The formats behind DecodePicture. Each returns the file's own channels: 1 grey, 3 colours, or 4
// CMYK.
#ifndef STAGECOACH_STAGE_PICTURES_FORMATS_H_
#define STAGECOACH_STAGE_PICTURES_FORMATS_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "stage/pictures/picture.h"

namespace stagecoach {

bool LooksLikeJpeg(std::span<const uint8_t> file);
bool LooksLikePng(std::span<const uint8_t> file);
bool LooksLikeTiff(std::span<const uint8_t> file);
bool LooksLikeWebp(std::span<const uint8_t> file);
absl::StatusOr<Picture> DecodeJpeg(std::span<const uint8_t> file, int64_t most_pixels);
absl::StatusOr<Picture> DecodePng(std::span<const uint8_t> file, int64_t most_pixels);
absl::StatusOr<Picture> DecodeTiff(std::span<const uint8_t> file, int64_t most_pixels);
absl::StatusOr<Picture> DecodeWebp(std::span<const uint8_t> file, int64_t most_pixels);

// "a GIF picture", "WebP"; if the beginning is unknown, its first bytes.
std::string FormatText(std::span<const uint8_t> file);

// Checks a header's size before anything is allocated.
absl::Status CheckPictureSize(int64_t height, int64_t width, int64_t most_pixels);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_PICTURES_FORMATS_H_
