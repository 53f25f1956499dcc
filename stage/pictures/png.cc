// PNG by libpng. The library leaves by longjmp where it finds an error, so nothing with a
// destructor lives in the two functions that call it.
#include <png.h>

#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "stage/pictures/decode.h"
#include "stage/pictures/formats.h"

namespace stagecoach {
namespace {

constexpr size_t kMostMessage = 200;

struct PngState {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const uint8_t> left;
  char message[kMostMessage] = "no memory";
  ~PngState() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void LeavePng(png_structp png, png_const_charp message) {
  auto* const state = static_cast<PngState*>(png_get_error_ptr(png));
  std::snprintf(state->message, kMostMessage, "%s", message);
  png_longjmp(png, 1);
}

void TakeBytes(png_structp png, png_bytep into, size_t count) {
  auto* const state = static_cast<PngState*>(png_get_io_ptr(png));
  if (count > state->left.size()) LeavePng(png, "the file is cut off");
  std::memcpy(into, state->left.data(), count);
  state->left = state->left.subspan(count);
}

bool BeginPng(PngState* state) {
  state->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, state, LeavePng,
                                      [](png_structp, png_const_charp) {});
  if (state->png == nullptr) return false;
  if (setjmp(png_jmpbuf(state->png)) != 0) return false;
  state->info = png_create_info_struct(state->png);
  if (state->info == nullptr) return false;
  png_set_read_fn(state->png, state, TakeBytes);
  // Texts and profiles, which may unpack to much, are not read at all.
  png_set_keep_unknown_chunks(state->png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  // Sizes are ours to judge.
  png_set_user_limits(state->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_read_info(state->png, state->info);
  return true;
}

// ids: the numbers as they are stored, one byte each.
bool ReadPngRows(PngState* state, bool ids, Picture* picture) {
  if (setjmp(png_jmpbuf(state->png)) != 0) return false;
  if (ids) {
    png_set_packing(state->png);
  } else {
    png_set_palette_to_rgb(state->png);
    png_set_expand_gray_1_2_4_to_8(state->png);
    png_set_strip_16(state->png);
    png_set_strip_alpha(state->png);
  }
  const int passes = png_set_interlace_handling(state->png);
  png_read_update_info(state->png, state->info);
  if (png_get_rowbytes(state->png, state->info) != picture->row_bytes()) {
    std::snprintf(state->message, kMostMessage, "rows of another size than its header says");
    return false;
  }
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t y = 0; y < picture->height; ++y) {
      png_read_row(state->png, picture->row(y), nullptr);
    }
  }
  png_read_end(state->png, nullptr);
  return true;
}

}  // namespace

bool LooksLikePng(std::span<const uint8_t> file) {
  constexpr size_t kSignature = 8;
  return file.size() >= kSignature && png_sig_cmp(file.data(), 0, kSignature) == 0;
}

absl::StatusOr<Picture> DecodePng(std::span<const uint8_t> file, int64_t most_pixels) {
  PngState state;
  state.left = file;
  const auto damaged = [&state] {
    return absl::DataLossError(absl::StrCat("PNG: ", state.message));
  };
  if (!BeginPng(&state)) return damaged();
  const int64_t height = png_get_image_height(state.png, state.info);
  const int64_t width = png_get_image_width(state.png, state.info);
  RETURN_IF_ERROR(Annotate(CheckPictureSize(height, width, most_pixels), "PNG"));
  const bool colours = (png_get_color_type(state.png, state.info) & PNG_COLOR_MASK_COLOR) != 0;
  Picture picture(height, width, colours ? 3 : 1);
  if (!ReadPngRows(&state, /*ids=*/false, &picture)) return damaged();
  return picture;
}

absl::StatusOr<Picture> DecodeMask(std::span<const uint8_t> file, int64_t most_pixels) {
  if (!LooksLikePng(file)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a mask has to be a PNG, whose numbers are kept as they are, and this is ",
                     FormatText(file)));
  }
  PngState state;
  state.left = file;
  const auto damaged = [&state] {
    return absl::DataLossError(absl::StrCat("PNG: ", state.message));
  };
  if (!BeginPng(&state)) return damaged();
  const int64_t height = png_get_image_height(state.png, state.info);
  const int64_t width = png_get_image_width(state.png, state.info);
  RETURN_IF_ERROR(Annotate(CheckPictureSize(height, width, most_pixels), "PNG"));
  const int colours = png_get_color_type(state.png, state.info);
  const int bits = png_get_bit_depth(state.png, state.info);
  if ((colours != PNG_COLOR_TYPE_GRAY && colours != PNG_COLOR_TYPE_PALETTE) || bits > 8) {
    return absl::InvalidArgumentError(
        "a mask with colours, transparency or 16 bits; give grey or a palette, of 8 bits or less, "
        "whose numbers are the classes");
  }
  Picture mask(height, width, 1);
  if (!ReadPngRows(&state, /*ids=*/true, &mask)) return damaged();
  return mask;
}

absl::StatusOr<PictureSize> PngSize(std::span<const uint8_t> head) {
  if (head.size() < kPngHeadBytes || !LooksLikePng(head)) {
    if (head.size() < kPngHeadBytes && LooksLikePng(head)) {
      return absl::DataLossError("PNG: no header");
    }
    return absl::InvalidArgumentError(
        absl::StrCat("a mask has to be a PNG, whose numbers are kept as they are, and this is ",
                     FormatText(head)));
  }
  const auto number = [head](size_t at) {
    int64_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | head[at + i];
    return value;
  };
  return PictureSize{.height = number(20), .width = number(16)};
}

}  // namespace stagecoach
