// TIFF by libtiff: the first picture of a file, grey, colours, a palette or ink, in strips or
// tiles, packed in any way that the library unpacks. Numbers are the file's: libtiff's own way to
// RGBA multiplies colours by their transparency.
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "stage/pictures/decode.h"
#include "stage/pictures/formats.h"
#include "stage/pictures/orientation.h"

namespace stagecoach {
namespace {

constexpr size_t kMostTiffMessage = 200;
constexpr int64_t kMostSamples = 8;  // of a pixel
constexpr int64_t kLibraryBytes = int64_t{1} << 20;

struct TiffInput {
  std::span<const uint8_t> file;
  size_t at = 0;
  char message[kMostTiffMessage] = "damaged or cut off";
};

int NoteTiffError(TIFF*, void* data, const char*, const char* format, va_list arguments) {
  std::vsnprintf(static_cast<TiffInput*>(data)->message, kMostTiffMessage, format, arguments);
  return 1;  // nothing is printed
}
int DropTiffWarning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

tmsize_t ReadTiff(thandle_t handle, void* into, tmsize_t bytes) {
  auto* const input = static_cast<TiffInput*>(handle);
  const size_t count =
      std::min(static_cast<size_t>(std::max<tmsize_t>(bytes, 0)), input->file.size() - input->at);
  std::memcpy(into, input->file.data() + input->at, count);
  input->at += count;
  return static_cast<tmsize_t>(count);
}
tmsize_t WriteTiff(thandle_t, void*, tmsize_t) { return 0; }
toff_t SeekTiff(thandle_t handle, toff_t offset, int whence) {
  auto* const input = static_cast<TiffInput*>(handle);
  const size_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? input->at : input->file.size();
  input->at = static_cast<size_t>(std::min<toff_t>(base + offset, input->file.size()));
  return input->at;
}
int CloseTiff(thandle_t) { return 0; }
toff_t TiffSize(thandle_t handle) { return static_cast<TiffInput*>(handle)->file.size(); }

using Tiff = std::unique_ptr<TIFF, void (*)(TIFF*)>;

Tiff OpenTiff(TiffInput* input, int64_t most_pixels) {
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), most_pixels * kDecodingBytes + kLibraryBytes);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), NoteTiffError, input);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), DropTiffWarning, input);
  return {TIFFClientOpenExt("picture", "rm", input, ReadTiff, WriteTiff, SeekTiff, CloseTiff,
                            TiffSize, nullptr, nullptr, options.get()),
          TIFFClose};
}

struct TiffForm {
  uint32_t height = 0, width = 0;
  uint16_t bits = 1, samples = 1;  // of a sample, of a pixel
  uint16_t colours = 0, planes = PLANARCONFIG_CONTIG, format = SAMPLEFORMAT_UINT;
  uint16_t packing = COMPRESSION_NONE, orientation = 1;
  bool multiplied = false;  // colours by their transparency, the fourth sample
  int64_t kept = 0;         // samples that are read
};

absl::Status UnreadTiff(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "TIFF: ", what, " is not read; write it with 8 or 16 bits of grey or colours, or as PNG"));
}

// How many samples of a pixel are looked at; 0: the form is not read.
int64_t KeptSamples(const TiffForm& form) {
  const bool small = form.bits == 1 || form.bits == 2 || form.bits == 4 || form.bits == 8;
  const bool wide = form.bits == 8 || form.bits == 16;
  switch (form.colours) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
      return small || form.bits == 16 ? 1 : 0;
    case PHOTOMETRIC_PALETTE:
      return small ? 1 : 0;
    case PHOTOMETRIC_RGB:
      if (form.multiplied) return form.bits == 8 && form.samples >= 4 ? 4 : 0;
      return wide && form.samples >= 3 ? 3 : 0;
    case PHOTOMETRIC_SEPARATED:
      return form.bits == 8 && form.samples == 4 ? 4 : 0;
    default:
      return 0;
  }
}

absl::StatusOr<TiffForm> ReadTiffForm(TIFF* tiff, const TiffInput& input, int64_t most_pixels) {
  TiffForm form;
  if (TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &form.width) != 1 ||
      TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &form.height) != 1 ||
      TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &form.colours) != 1) {
    return absl::DataLossError(absl::StrCat("TIFF: ", input.message));
  }
  RETURN_IF_ERROR(Annotate(CheckPictureSize(form.height, form.width, most_pixels), "TIFF"));
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &form.bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &form.samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &form.planes);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &form.format);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &form.packing);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &form.orientation);
  if (form.packing == COMPRESSION_JPEG && form.colours == PHOTOMETRIC_YCBCR) {
    TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    form.colours = PHOTOMETRIC_RGB;
  }
  uint16_t extra = 0;
  uint16_t* kinds = nullptr;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &extra, &kinds);
  form.multiplied =
      form.colours == PHOTOMETRIC_RGB && extra > 0 && kinds[0] == EXTRASAMPLE_ASSOCALPHA;
  form.kept = form.format == SAMPLEFORMAT_UINT ? KeptSamples(form) : 0;
  if (form.kept == 0 || form.samples > kMostSamples) {
    return UnreadTiff(absl::StrCat(form.samples, " samples of ", form.bits, " bits, colours ",
                                   form.colours, ", number format ", form.format));
  }
  if (TIFFIsCODECConfigured(form.packing) != 1) {
    return UnreadTiff(absl::StrCat("packing ", form.packing));
  }
  return form;
}

// Number i of packed ones: what is stored, of 16 bits the upper 8.
uint8_t SampleAt(const uint8_t* packed, int64_t i, int bits) {
  if (bits == 8) return packed[i];
  if (bits == 16) {
    uint16_t number = 0;
    std::memcpy(&number, packed + 2 * i, sizeof(number));  // libtiff has made it the machine's
    return static_cast<uint8_t>(number >> 8);
  }
  const int64_t bit = i * bits;
  return static_cast<uint8_t>(packed[bit / 8] >> (8 - bits - bit % 8) & ((1 << bits) - 1));
}

// A row of a strip or of a tile, which begins at column `left`; of planes, that of sample `plane`.
void TakeRow(const TiffForm& form, const uint8_t* packed, int64_t y, int64_t left, int64_t count,
             int64_t plane, Picture* samples) {
  uint8_t* to = samples->row(y) + left * form.kept;
  for (int64_t x = 0; x < count; ++x, to += form.kept) {
    if (form.planes == PLANARCONFIG_SEPARATE) {
      to[plane] = SampleAt(packed, x, form.bits);
      continue;
    }
    for (int64_t s = 0; s < form.kept; ++s) {
      to[s] = SampleAt(packed, x * form.samples + s, form.bits);
    }
  }
}

bool ReadStrips(TIFF* tiff, const TiffForm& form, int64_t plane, Picture* samples) {
  std::vector<uint8_t> row(static_cast<size_t>(TIFFScanlineSize(tiff)));
  for (int64_t y = 0; y < samples->height; ++y) {
    if (TIFFReadScanline(tiff, row.data(), static_cast<uint32_t>(y),
                         static_cast<uint16_t>(plane)) != 1) {
      return false;
    }
    TakeRow(form, row.data(), y, 0, samples->width, plane, samples);
  }
  return true;
}

bool ReadTiles(TIFF* tiff, const TiffForm& form, int64_t plane, Picture* samples) {
  uint32_t height = 0, width = 0;
  TIFFGetField(tiff, TIFFTAG_TILELENGTH, &height);
  TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &width);
  std::vector<uint8_t> tile(static_cast<size_t>(TIFFTileSize(tiff)));
  const size_t row_bytes = static_cast<size_t>(TIFFTileRowSize(tiff));
  for (int64_t top = 0; top < samples->height; top += height) {
    for (int64_t left = 0; left < samples->width; left += width) {
      if (TIFFReadTile(tiff, tile.data(), static_cast<uint32_t>(left), static_cast<uint32_t>(top),
                       0, static_cast<uint16_t>(plane)) < 0) {
        return false;
      }
      const int64_t rows = std::min<int64_t>(height, samples->height - top);
      const int64_t columns = std::min<int64_t>(width, samples->width - left);
      for (int64_t y = 0; y < rows; ++y) {
        TakeRow(form, tile.data() + static_cast<size_t>(y) * row_bytes, top + y, left, columns,
                plane, samples);
      }
    }
  }
  return true;
}

// Buffers are of what the header says as well.
absl::Status CheckBuffer(TIFF* tiff, const TiffForm& form) {
  const bool tiled = TIFFIsTiled(tiff) != 0;
  const int64_t bytes = tiled ? TIFFTileSize(tiff) : TIFFScanlineSize(tiff);
  const int64_t samples = form.planes == PLANARCONFIG_SEPARATE ? 1 : form.samples;
  const int64_t least = (int64_t{form.width} * samples * form.bits + 7) / 8;
  const int64_t most = std::max(kLibraryBytes, int64_t{form.height} * form.width * kMostSamples);
  if (bytes > 0 && bytes <= most && (tiled || bytes >= least)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("TIFF: strips or tiles of ", bytes, " bytes"));
}

Picture PaletteColours(TIFF* tiff, const TiffForm& form, const Picture& places) {
  uint16_t* maps[3] = {};
  Picture colours(places.height, places.width, 3);
  if (TIFFGetField(tiff, TIFFTAG_COLORMAP, &maps[0], &maps[1], &maps[2]) != 1) return {};
  CHECK_LE(form.bits, 8) << "a map has a place for each number";
  for (size_t i = 0; i < places.bytes.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) {
      colours.bytes[3 * i + c] = static_cast<uint8_t>(maps[c][places.bytes[i]] >> 8);
    }
  }
  return colours;
}

void SpreadGrey(const TiffForm& form, Picture* grey) {
  const int most = form.bits >= 8 ? 255 : (1 << form.bits) - 1;
  for (uint8_t& byte : grey->bytes) {
    const int bright = byte * (255 / most);
    byte = static_cast<uint8_t>(form.colours == PHOTOMETRIC_MINISWHITE ? 255 - bright : bright);
  }
}

// Colours before they were multiplied, as Pillow has them; where nothing is seen they are black.
Picture DividedColours(const Picture& multiplied) {
  Picture colours(multiplied.height, multiplied.width, 3);
  const uint8_t* from = multiplied.bytes.data();
  for (size_t i = 0; i < colours.bytes.size(); i += 3, from += 4) {
    for (size_t c = 0; c < 3; ++c) {
      const int value = from[3] == 0 ? 0 : 255 * from[c] / from[3];
      colours.bytes[i + c] = static_cast<uint8_t>(std::min(value, 255));
    }
  }
  return colours;
}

}  // namespace

bool LooksLikeTiff(std::span<const uint8_t> file) {
  if (file.size() < 4) return false;
  const auto begins = [file](const char* magic) { return std::memcmp(file.data(), magic, 4) == 0; };
  return begins("II*\0") || begins("MM\0*") || begins("II+\0") || begins("MM\0+");
}

absl::StatusOr<Picture> DecodeTiff(std::span<const uint8_t> file, int64_t most_pixels) {
  TiffInput input{.file = file};
  const auto damaged = [&input] {
    return absl::DataLossError(absl::StrCat("TIFF: ", input.message));
  };
  const Tiff tiff = OpenTiff(&input, most_pixels);
  if (tiff == nullptr) return damaged();
  ASSIGN_OR_RETURN(const TiffForm form, ReadTiffForm(tiff.get(), input, most_pixels));
  RETURN_IF_ERROR(CheckBuffer(tiff.get(), form));
  Picture picture(form.height, form.width, form.kept);
  const int64_t planes = form.planes == PLANARCONFIG_SEPARATE ? form.kept : 1;
  for (int64_t plane = 0; plane < planes; ++plane) {
    const bool read = TIFFIsTiled(tiff.get()) != 0 ? ReadTiles(tiff.get(), form, plane, &picture)
                                                   : ReadStrips(tiff.get(), form, plane, &picture);
    if (!read) return damaged();
  }
  if (form.colours == PHOTOMETRIC_PALETTE) {
    picture = PaletteColours(tiff.get(), form, picture);
    if (picture.bytes.empty()) return damaged();
  } else if (form.kept == 1) {
    SpreadGrey(form, &picture);
  } else if (form.multiplied) {
    picture = DividedColours(picture);
  } else {
    picture = WithChannels(std::move(picture), 3);  // ink: turning has room for three channels
  }
  return Turned(std::move(picture), form.orientation);
}

}  // namespace stagecoach
