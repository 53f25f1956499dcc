// Picture: pixels with a byte for each channel, row by row from the top, as decoded from a file.
// Ownership: owns its bytes.  Threads: a plain value.
#ifndef STAGECOACH_STAGE_PICTURES_PICTURE_H_
#define STAGECOACH_STAGE_PICTURES_PICTURE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stagecoach {

struct Picture {
  Picture() = default;
  Picture(int64_t rows, int64_t columns, int64_t depth)
      : height(rows),
        width(columns),
        channels(depth),
        bytes(static_cast<size_t>(rows) * static_cast<size_t>(columns) *
              static_cast<size_t>(depth)) {}

  int64_t height = 0, width = 0;
  int64_t channels = 0;        // 1: grey; 3: red, green, blue
  std::vector<uint8_t> bytes;  // [height, width, channels]

  size_t row_bytes() const { return static_cast<size_t>(width * channels); }
  uint8_t* row(int64_t y) { return bytes.data() + static_cast<size_t>(y) * row_bytes(); }
  const uint8_t* row(int64_t y) const {
    return bytes.data() + static_cast<size_t>(y) * row_bytes();
  }
  friend bool operator==(const Picture&, const Picture&) = default;
};

// The brightness of a pixel of three colours.
inline uint8_t GreyOf(const uint8_t* colours) {
  return static_cast<uint8_t>(
      (19595U * colours[0] + 38470U * colours[1] + 7471U * colours[2] + 32768U) >> 16);
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_PICTURES_PICTURE_H_
