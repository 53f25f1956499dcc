// WebP by libwebp, lossy and lossless. Transparency is dropped.
#include <webp/decode.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "stage/pictures/decode.h"
#include "stage/pictures/formats.h"

namespace stagecoach {

bool LooksLikeWebp(std::span<const uint8_t> file) {
  return file.size() >= 12 && std::memcmp(file.data(), "RIFF", 4) == 0 &&
         std::memcmp(file.data() + 8, "WEBP", 4) == 0;
}

absl::StatusOr<Picture> DecodeWebp(std::span<const uint8_t> file, int64_t most_pixels) {
  const auto damaged = [] { return absl::DataLossError("WebP: damaged or cut off"); };
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(file.data(), file.size(), &features) != VP8_STATUS_OK) return damaged();
  RETURN_IF_ERROR(Annotate(CheckPictureSize(features.height, features.width, most_pixels), "WebP"));
  if (features.has_animation != 0) {
    return absl::InvalidArgumentError(
        "WebP: an animation is not read; write the picture that is meant as a file of its own");
  }
  Picture picture(features.height, features.width, 3);
  if (WebPDecodeRGBInto(file.data(), file.size(), picture.bytes.data(), picture.bytes.size(),
                        static_cast<int>(picture.row_bytes())) == nullptr) {
    return damaged();
  }
  return picture;
}

}  // namespace stagecoach
