#include "stage/pictures/decode.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/file_kind.h"
#include "stage/pictures/formats.h"
#include "stage/pictures/orientation.h"

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

std::string FormatText(std::span<const uint8_t> file) {
  const std::string head(file.begin(),
                         file.begin() + std::min<int64_t>(kFileKindBytes, std::ssize(file)));
  const std::optional<FileKind> kind = FileKindOf(head);
  if (kind.has_value()) return std::string(kind->name);
  return absl::StrCat("a file that begins with \"", absl::BytesToHexString(head.substr(0, 4)),
                      "\"");
}

absl::StatusOr<Picture> DecodePicture(std::span<const uint8_t> file, int64_t channels,
                                      int64_t most_pixels) {
  CHECK(channels == 1 || channels == 3) << channels;
  Picture picture;
  if (LooksLikeJpeg(file)) {
    ASSIGN_OR_RETURN(picture, DecodeJpeg(file, most_pixels));
  } else if (LooksLikePng(file)) {
    ASSIGN_OR_RETURN(picture, DecodePng(file, most_pixels));
  } else if (LooksLikeTiff(file)) {
    ASSIGN_OR_RETURN(picture, DecodeTiff(file, most_pixels));
  } else if (LooksLikeWebp(file)) {
    ASSIGN_OR_RETURN(picture, DecodeWebp(file, most_pixels));
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat(FormatText(file), ", not JPEG, PNG, TIFF or WebP; give one of them"));
  }
  return WithChannels(std::move(picture), channels);
}

absl::StatusOr<Picture> DecodeUpright(std::span<const uint8_t> file, int64_t channels,
                                      int64_t most_pixels) {
  ASSIGN_OR_RETURN(Picture picture, DecodePicture(file, channels, most_pixels));
  return Turned(std::move(picture), OrientationOf(file));
}

bool IsPictureName(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  for (const char* const ending :
       {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".tif", ".tiff", ".webp"}) {
    if (absl::EndsWith(lower, ending)) return true;
  }
  return false;
}

Picture WithChannels(Picture picture, int64_t channels) {
  CHECK(channels == 1 || channels == 3) << channels;
  if (picture.channels == 4) picture = InkToColours(picture);
  if (picture.channels == channels) return picture;
  return channels == 3 ? GreyToColours(picture) : ColoursToGrey(picture);
}

}  // namespace stagecoach
