#include "stage/pictures/orientation.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "stage/pictures/formats.h"

namespace stagecoach {
namespace {

using std::string_view_literals::operator""sv;
using Bytes = std::span<const uint8_t>;

bool BeginsWith(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

// CHECKed by the caller: count bytes are there.
uint32_t NumberIn(Bytes bytes, size_t at, size_t count, bool big) {
  uint32_t number = 0;
  for (size_t i = 0; i < count; ++i) {
    number = number << 8 | bytes[at + (big ? i : count - 1 - i)];
  }
  return number;
}

// The tag in the first directory of a block of EXIF, which is a small TIFF.
int OrientationInExif(Bytes exif) {
  constexpr uint32_t kOrientation = 0x0112;
  constexpr size_t kEntryBytes = 12;
  const bool big = BeginsWith(exif, "MM\0*"sv);
  if (exif.size() < 8 || (!big && !BeginsWith(exif, "II*\0"sv))) return 1;
  const size_t directory = NumberIn(exif, 4, 4, big);
  if (directory > exif.size() || exif.size() - directory < 2) return 1;
  const size_t entries = NumberIn(exif, directory, 2, big);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + i * kEntryBytes;
    if (at > exif.size() || exif.size() - at < kEntryBytes) return 1;
    if (NumberIn(exif, at, 2, big) != kOrientation) continue;
    const uint32_t value = NumberIn(exif, at + 8, 2, big);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Bytes ExifOfJpeg(Bytes file) {
  size_t at = 2;
  while (file.size() - at >= 4 && file[at] == 0xff) {
    const uint8_t marker = file[at + 1];
    if (marker == 0xff) {  // filling
      ++at;
      continue;
    }
    constexpr uint8_t kScan = 0xda, kApp1 = 0xe1;
    const size_t length = NumberIn(file, at + 2, 2, true);  // counts itself
    if (marker == kScan || length < 2 || length > file.size() - at - 2) return {};
    const Bytes content = file.subspan(at + 4, length - 2);
    if (marker == kApp1 && BeginsWith(content, "Exif\0\0"sv)) return content.subspan(6);
    at += 2 + length;
  }
  return {};
}

Bytes ExifOfPng(Bytes file) {
  for (size_t at = 8; file.size() - at >= 12;) {
    const size_t length = NumberIn(file, at, 4, true);
    if (length > file.size() - at - 12) return {};
    if (BeginsWith(file.subspan(at + 4), "eXIf"sv)) return file.subspan(at + 8, length);
    at += 12 + length;
  }
  return {};
}

Bytes ExifOfWebp(Bytes file) {
  for (size_t at = 12; file.size() - at >= 8;) {
    const size_t length = NumberIn(file, at + 4, 4, false);
    if (length > file.size() - at - 8) return {};
    const Bytes content = file.subspan(at + 8, length);
    if (BeginsWith(file.subspan(at), "EXIF"sv)) {
      return BeginsWith(content, "Exif\0\0"sv) ? content.subspan(6) : content;
    }
    at += std::min(file.size() - at, 8 + length + length % 2);
  }
  return {};
}

}  // namespace

int OrientationOf(std::span<const uint8_t> file) {
  if (LooksLikeJpeg(file)) return OrientationInExif(ExifOfJpeg(file));
  if (LooksLikePng(file)) return OrientationInExif(ExifOfPng(file));
  if (LooksLikeWebp(file)) return OrientationInExif(ExifOfWebp(file));
  return 1;
}

Picture Turned(Picture picture, int orientation) {
  if (orientation < 2 || orientation > 8) return picture;
  const bool lies = orientation >= 5;  // rows are columns
  const int64_t height = lies ? picture.width : picture.height;
  const int64_t width = lies ? picture.height : picture.width;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_below =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Picture turned(height, width, picture.channels);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const int64_t row = lies ? x : y, column = lies ? y : x;  // as stored
      const uint8_t* const from =
          picture.row(from_below ? picture.height - 1 - row : row) +
          (from_right ? picture.width - 1 - column : column) * picture.channels;
      std::copy_n(from, picture.channels, turned.row(y) + x * picture.channels);
    }
  }
  return turned;
}

}  // namespace stagecoach
