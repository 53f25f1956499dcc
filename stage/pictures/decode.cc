#include "stage/pictures/decode.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "stage/pictures/formats.h"

namespace stagecoach {
namespace {

// a * b / 255, rounded.
int ShareOf255(int a, int b) {
  const int product = a * b + 128;
  return (product + (product >> 8)) >> 8;
}

Picture InkToColours(const Picture& ink) {
  Picture colours(ink.height, ink.width, 3);
  const uint8_t* from = ink.bytes.data();
  for (uint8_t* to = colours.bytes.data(); to < colours.bytes.data() + colours.bytes.size();
       to += 3, from += 4) {
    const int white = 255 - from[3];
    for (int i = 0; i < 3; ++i) {
      to[i] = static_cast<uint8_t>(std::clamp(white - ShareOf255(from[i], white), 0, 255));
    }
  }
  return colours;
}

Picture GreyToColours(const Picture& grey) {
  Picture colours(grey.height, grey.width, 3);
  uint8_t* to = colours.bytes.data();
  for (const uint8_t byte : grey.bytes) {
    std::fill_n(to, 3, byte);
    to += 3;
  }
  return colours;
}

Picture ColoursToGrey(const Picture& colours) {
  Picture grey(colours.height, colours.width, 1);
  const uint8_t* from = colours.bytes.data();
  for (uint8_t& byte : grey.bytes) {
    byte = GreyOf(from);
    from += 3;
  }
  return grey;
}

}  // namespace

absl::Status CheckPictureSize(int64_t height, int64_t width, int64_t most_pixels) {
  if (height >= 1 && width >= 1 && width <= most_pixels && height <= most_pixels / width) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("a picture of ", width, " x ", height,
                                                 " pixels; at most ", most_pixels,
                                                 " are read: make it smaller"));
}

absl::StatusOr<Picture> DecodePicture(std::span<const uint8_t> file, int64_t channels,
                                      int64_t most_pixels) {
  CHECK(channels == 1 || channels == 3) << channels;
  Picture picture;
  if (LooksLikeJpeg(file)) {
    ASSIGN_OR_RETURN(picture, DecodeJpeg(file, most_pixels));
  } else if (LooksLikePng(file)) {
    ASSIGN_OR_RETURN(picture, DecodePng(file, most_pixels));
  } else {
    const std::string head(file.begin(), file.begin() + std::min<int64_t>(4, std::ssize(file)));
    return absl::InvalidArgumentError(absl::StrCat("begins with \"", absl::BytesToHexString(head),
                                                   "\", neither JPEG nor PNG; give one of them"));
  }
  return WithChannels(std::move(picture), channels);
}

Picture WithChannels(Picture picture, int64_t channels) {
  CHECK(channels == 1 || channels == 3) << channels;
  if (picture.channels == 4) picture = InkToColours(picture);
  if (picture.channels == channels) return picture;
  return channels == 3 ? GreyToColours(picture) : ColoursToGrey(picture);
}

}  // namespace stagecoach
