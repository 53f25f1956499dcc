// JPEG by libjpeg-turbo. The library leaves by longjmp where it finds an error, so nothing with a destructor lives in
// the two functions that call it.
#include <csetjmp>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "stage/pictures/formats.h"
#include "stage/pictures/libjpeg.h"

namespace stagecoach {
namespace {

// A progressive file may say thousands of scans of a few bytes each; each goes through the whole picture. Encoders
// write about ten.
constexpr int kMostScans = 100;

struct JpegState {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  jpeg_source_mgr source = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX] = "";
  ~JpegState() { jpeg_destroy_decompress(&info); }  // does nothing where it was not created
};

JpegState& StateOf(j_common_ptr info) { return *static_cast<JpegState*>(info->client_data); }

[[noreturn]] void LeaveJpeg(j_common_ptr info) {
  JpegState& state = StateOf(info);
  state.errors.format_message(info, state.message);
  std::longjmp(state.escape, 1);
}

// Below 0 it is a warning: what the library goes on with by making something up. Three are harmless.
void NoteJpeg(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  if (code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM) return;
  LeaveJpeg(info);
}

void CheckScans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  std::snprintf(StateOf(info).message, JMSG_LENGTH_MAX, "more than %d scans", kMostScans);
  std::longjmp(StateOf(info).escape, 1);
}

boolean NoMoreInput(j_decompress_ptr info) {
  info->err->msg_code = JERR_INPUT_EOF;
  LeaveJpeg(reinterpret_cast<j_common_ptr>(info));
}

void SkipInput(j_decompress_ptr info,
               long count) {  // NOLINT(google-runtime-int): the library's type
  if (count <= 0) return;
  if (static_cast<size_t>(count) > info->src->bytes_in_buffer) NoMoreInput(info);
  info->src->next_input_byte += count;
  info->src->bytes_in_buffer -= static_cast<size_t>(count);
}

bool BeginJpeg(JpegState* state, std::span<const uint8_t> file) {
  jpeg_decompress_struct& info = state->info;
  info.err = jpeg_std_error(&state->errors);
  info.client_data = state;
  state->errors.error_exit = LeaveJpeg;
  state->errors.emit_message = NoteJpeg;
  state->source.next_input_byte = file.data();
  state->source.bytes_in_buffer = file.size();
  state->source.init_source = [](j_decompress_ptr) {};
  state->source.term_source = [](j_decompress_ptr) {};
  state->source.fill_input_buffer = NoMoreInput;
  state->source.skip_input_data = SkipInput;
  state->source.resync_to_restart = jpeg_resync_to_restart;
  state->progress.progress_monitor = CheckScans;
  if (setjmp(state->escape) != 0) return false;
  jpeg_create_decompress(&info);
  info.src = &state->source;
  info.progress = &state->progress;
  return jpeg_read_header(&info, TRUE) == JPEG_HEADER_OK;
}

bool ReadJpegRows(JpegState* state, Picture* picture) {
  jpeg_decompress_struct& info = state->info;
  if (setjmp(state->escape) != 0) return false;
  jpeg_start_decompress(&info);
  CHECK_EQ(int64_t{info.output_width} * info.output_components, picture->width * picture->channels);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = picture->row(info.output_scanline);
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

// The colours in which it is decoded; JCS_UNKNOWN: it has others.
J_COLOR_SPACE OutputColours(J_COLOR_SPACE stored) {
  switch (stored) {
    case JCS_GRAYSCALE:
      return JCS_GRAYSCALE;
    case JCS_RGB:
    case JCS_YCbCr:
      return JCS_RGB;
    case JCS_CMYK:
    case JCS_YCCK:
      return JCS_CMYK;
    default:
      return JCS_UNKNOWN;
  }
}

}  // namespace

bool LooksLikeJpeg(std::span<const uint8_t> file) {
  return file.size() >= 3 && file[0] == 0xff && file[1] == 0xd8 && file[2] == 0xff;
}

absl::StatusOr<Picture> DecodeJpeg(std::span<const uint8_t> file, int64_t most_pixels) {
  JpegState state;
  const auto damaged = [&state] {
    return absl::DataLossError(absl::StrCat("JPEG: ", state.message));
  };
  if (!BeginJpeg(&state, file)) return damaged();
  jpeg_decompress_struct& info = state.info;
  RETURN_IF_ERROR(
      Annotate(CheckPictureSize(info.image_height, info.image_width, most_pixels), "JPEG"));
  info.out_color_space = OutputColours(info.jpeg_color_space);
  if (info.out_color_space == JCS_UNKNOWN) {
    return absl::InvalidArgumentError(absl::StrCat(
        "JPEG: ", info.num_components,
        " channels that are neither grey, colours nor CMYK; write it as one of these"));
  }
  info.dct_method = JDCT_ISLOW;
  info.do_fancy_upsampling = TRUE;
  const int channels = info.out_color_space == JCS_RGB    ? 3
                       : info.out_color_space == JCS_CMYK ? 4
                                                          : 1;
  Picture picture(info.image_height, info.image_width, channels);
  if (!ReadJpegRows(&state, &picture)) return damaged();
  // Adobe's files have ink as 255 - ink.
  if (channels == 4 && info.saw_Adobe_marker) {
    for (uint8_t& byte : picture.bytes) byte = static_cast<uint8_t>(255 - byte);
  }
  return picture;
}

}  // namespace stagecoach
