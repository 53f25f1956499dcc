// The library leaves by longjmp where it finds an error, so nothing with a destructor lives in the
// function that calls it.
#include "stage/pictures/encode.h"

#include <png.h>

#include "base/errors/check.h"

namespace stagecoach {
namespace {

constexpr int64_t kMostMaskClasses = 256;

struct PngWriting {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<uint8_t> file;
  ~PngWriting() { png_destroy_write_struct(&png, &info); }
};

[[noreturn]] void LeavePngWriting(png_structp png, png_const_charp) { png_longjmp(png, 1); }

void KeepBytes(png_structp png, png_bytep bytes, size_t count) {
  auto* const state = static_cast<PngWriting*>(png_get_io_ptr(png));
  state->file.insert(state->file.end(), bytes, bytes + count);
}

bool WritePng(const Picture& picture, int colours, const std::vector<png_color>& palette,
              PngWriting* state) {
  state->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, LeavePngWriting,
                                       [](png_structp, png_const_charp) {});
  if (state->png == nullptr) return false;
  if (setjmp(png_jmpbuf(state->png)) != 0) return false;
  state->info = png_create_info_struct(state->png);
  if (state->info == nullptr) return false;
  png_set_write_fn(state->png, state, KeepBytes, nullptr);
  png_set_user_limits(state->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_IHDR(state->png, state->info, static_cast<uint32_t>(picture.width),
               static_cast<uint32_t>(picture.height), 8, colours, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!palette.empty()) {
    png_set_PLTE(state->png, state->info, palette.data(), static_cast<int>(palette.size()));
  }
  png_write_info(state->png, state->info);
  for (int64_t y = 0; y < picture.height; ++y) png_write_row(state->png, picture.row(y));
  png_write_end(state->png, nullptr);
  return true;
}

absl::StatusOr<std::vector<uint8_t>> Encoded(const Picture& picture, int colours,
                                             const std::vector<png_color>& palette) {
  PngWriting state;
  if (!WritePng(picture, colours, palette, &state)) {
    return absl::ResourceExhaustedError("no memory to write a PNG");
  }
  return std::move(state.file);
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> EncodePng(const Picture& picture) {
  CHECK(picture.channels == 1 || picture.channels == 3) << picture.channels;
  return Encoded(picture, picture.channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, {});
}

absl::StatusOr<std::vector<uint8_t>> EncodeMask(const Picture& mask, int64_t classes) {
  CHECK_EQ(mask.channels, 1);
  CHECK(classes >= 1 && classes <= kMostMaskClasses) << classes;
  std::vector<png_color> palette;
  for (int64_t id = 0; id < classes; ++id) {
    const std::array<uint8_t, 3> colour = MaskColour(id);
    palette.push_back({colour[0], colour[1], colour[2]});
  }
  return Encoded(mask, PNG_COLOR_TYPE_PALETTE, palette);
}

// Three bits of the id after the other go to red, green and blue, from their highest bit down.
std::array<uint8_t, 3> MaskColour(int64_t id) {
  std::array<uint8_t, 3> colour = {};
  for (int bit = 7; bit >= 0; --bit, id >>= 3) {
    for (size_t c = 0; c < 3; ++c) {
      colour[c] = static_cast<uint8_t>(colour[c] | (id >> c & 1) << bit);
    }
  }
  return colour;
}

}  // namespace stagecoach
