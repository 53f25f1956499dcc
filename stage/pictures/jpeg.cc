// JPEG by libjpeg-turbo. The library leaves by longjmp where it finds an error, so nothing with a
// destructor lives in the two functions that call it.
#include <csetjmp>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "stage/pictures/decode.h"
#include "stage/pictures/formats.h"
#include "stage/pictures/libjpeg.h"

namespace stagecoach {
namespace {

// A progressive file may say thousands of scans of a few bytes each; each goes through the whole
// picture. Encoders write about ten.
constexpr int kMostScans = 100;

struct JpegState {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  jpeg_source_mgr source = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX] = "";
  bool unread_form = false;  // the message is of a form that is not read, not of damage
  ~JpegState() { jpeg_destroy_decompress(&info); }  // does nothing where it was not created
};

JpegState& StateOf(j_common_ptr info) { return *static_cast<JpegState*>(info->client_data); }

bool IsUnreadForm(int code) {
  switch (code) {
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_COMPONENT_COUNT:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_IMAGE_TOO_BIG:
    case JERR_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED:
    case JERR_WIDTH_OVERFLOW:
      return true;
    default:
      return false;
  }
}

[[noreturn]] void LeaveJpeg(j_common_ptr info) {
  JpegState& state = StateOf(info);
  state.errors.format_message(info, state.message);
  state.unread_form = IsUnreadForm(info->err->msg_code);
  std::longjmp(state.escape, 1);
}

// Below 0 it is a warning: what the library goes on with by making something up. Three are
// harmless.
void NoteJpeg(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  if (code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM) return;
  LeaveJpeg(info);
}

void CheckScans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  JpegState& state = StateOf(info);
  std::snprintf(state.message, JMSG_LENGTH_MAX, "more than %d scans", kMostScans);
  state.unread_form = true;
  std::longjmp(state.escape, 1);
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
  if (info.output_height != picture->height || info.output_width != picture->width ||
      info.output_components != picture->channels) {
    std::snprintf(state->message, JMSG_LENGTH_MAX, "rows of another size than its header says");
    return false;
  }
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

// Of a file of more than one scan the library keeps all coefficients until the last one.
absl::Status CheckCoefficients(jpeg_decompress_struct* info, int64_t channels,
                               int64_t most_pixels) {
  if (!jpeg_has_multiple_scans(info)) return absl::OkStatus();
  const auto up_to = [](int64_t count, int64_t step) { return (count + step - 1) / step * step; };
  int64_t bytes = int64_t{info->image_height} * info->image_width * channels;
  for (int i = 0; i < info->num_components; ++i) {
    const jpeg_component_info& component = info->comp_info[i];
    bytes += up_to(component.width_in_blocks, component.h_samp_factor) *
             up_to(component.height_in_blocks, component.v_samp_factor) *
             static_cast<int64_t>(sizeof(JBLOCK));
  }
  const int64_t most = most_pixels * kDecodingBytes;
  if (bytes <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a progressive picture of ", info->image_width, " x ", info->image_height,
                   " pixels needs ", bytes, " bytes to decode, at most ", most,
                   " are used: write it as a baseline JPEG, or make it smaller"));
}

}  // namespace

bool LooksLikeJpeg(std::span<const uint8_t> file) {
  return file.size() >= 3 && file[0] == 0xff && file[1] == 0xd8 && file[2] == 0xff;
}

absl::StatusOr<Picture> DecodeJpeg(std::span<const uint8_t> file, int64_t most_pixels) {
  JpegState state;
  const auto damaged = [&state] {
    if (!state.unread_form) return absl::DataLossError(absl::StrCat("JPEG: ", state.message));
    return absl::InvalidArgumentError(
        absl::StrCat("JPEG: ", state.message, "; write it as a baseline JPEG of 8 bits"));
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
  RETURN_IF_ERROR(Annotate(CheckCoefficients(&info, channels, most_pixels), "JPEG"));
  Picture picture(info.image_height, info.image_width, channels);
  if (!ReadJpegRows(&state, &picture)) return damaged();
  // Files have ink as 255 - ink, with and without Adobe's marker.
  if (channels == 4) {
    for (uint8_t& byte : picture.bytes) byte = static_cast<uint8_t>(255 - byte);
  }
  return picture;
}

}  // namespace stagecoach
