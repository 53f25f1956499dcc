// Pictures and their files for tests, written by the libraries that read them.
#ifndef STAGECOACH_STAGE_PICTURES_PICTURE_TESTING_H_
#define STAGECOACH_STAGE_PICTURES_PICTURE_TESTING_H_

#include <malloc.h>
#include <png.h>
#include <tiffio.h>
#include <webp/encode.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/numbers/random.h"
#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"
#include "gtest/gtest.h"
#include "stage/pictures/libjpeg.h"
#include "stage/pictures/picture.h"

namespace stagecoach {

// Soft colours with some noise; another picture for every seed.
inline Picture MadeUpPicture(int64_t height, int64_t width, int64_t channels, uint64_t seed = 1) {
  Picture picture(height, width, channels);
  const RandomStream stream{.seed = seed};
  size_t i = 0;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c, ++i) {
        const auto soft = static_cast<int64_t>(seed * 7 % 40) + (3 + c) * x * 18 / width +
                          (5 - c) * y * 18 / height;
        picture.bytes[i] = static_cast<uint8_t>(soft + RandomBits(stream, i) % 16);
      }
    }
  }
  return picture;
}

// `change` sets the library's options before it writes.
using ChangeJpeg = std::function<void(jpeg_compress_struct*)>;
inline std::vector<uint8_t> JpegFile(const Picture& picture, const ChangeJpeg& change = {}) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): the library's type
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.input_components = static_cast<int>(picture.channels);
  info.in_color_space = picture.channels == 3   ? JCS_RGB
                        : picture.channels == 4 ? JCS_CMYK
                                                : JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  if (change) change(&info);
  jpeg_start_compress(&info, TRUE);
  for (int64_t y = 0; y < picture.height; ++y) {
    auto* row = const_cast<JSAMPROW>(picture.row(y));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::vector<uint8_t> file(bytes, bytes + size);
  jpeg_destroy_compress(&info);
  std::free(bytes);  // NOLINT(cppcoreguidelines-no-malloc): the library's memory
  return file;
}

// Rows are in the format's own form: 16 bits with the upper byte first, indexes of a palette, alpha
// last.
struct PngForm {
  int depth = 8, colours = PNG_COLOR_TYPE_RGB;
  bool interlaced = false;
  std::vector<png_color> palette;
  std::vector<uint8_t> palette_alpha = {};
  int transparent = -1;  // the grey, or the red, green and blue, that is transparent
};
inline std::vector<uint8_t> PngFile(int64_t height, int64_t width, const std::vector<uint8_t>& rows,
                                    const PngForm& form) {
  std::vector<uint8_t> file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp to, png_bytep bytes, size_t count) {
        auto* const into = static_cast<std::vector<uint8_t>*>(png_get_io_ptr(to));
        into->insert(into->end(), bytes, bytes + count);
      },
      nullptr);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_IHDR(png, info, static_cast<uint32_t>(width), static_cast<uint32_t>(height), form.depth,
               form.colours, form.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!form.palette.empty()) {
    png_set_PLTE(png, info, form.palette.data(), static_cast<int>(form.palette.size()));
  }
  if (!form.palette_alpha.empty() || form.transparent >= 0) {
    const auto value = static_cast<uint16_t>(std::max(form.transparent, 0));
    const png_color_16 colour = {0, value, value, value, value};
    png_set_tRNS(png, info, form.palette_alpha.data(), static_cast<int>(form.palette_alpha.size()),
                 form.transparent >= 0 ? &colour : nullptr);
  }
  png_write_info(png, info);
  const size_t row_bytes = rows.size() / static_cast<size_t>(height);
  std::vector<uint8_t*> pointers;
  for (int64_t y = 0; y < height; ++y) {
    pointers.push_back(const_cast<uint8_t*>(rows.data()) + static_cast<size_t>(y) * row_bytes);
  }
  png_set_interlace_handling(png);
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

inline std::vector<uint8_t> PngFile(const Picture& picture) {
  return PngFile(picture.height, picture.width, picture.bytes,
                 {.colours = picture.channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY});
}

// The library writes the header only.
inline std::vector<uint8_t> PngHeader(uint32_t height, uint32_t width) {
  std::vector<uint8_t> png;
  png_structp writer = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(writer);
  png_set_write_fn(
      writer, &png,
      [](png_structp to, png_bytep bytes, size_t count) {
        auto* const into = static_cast<std::vector<uint8_t>*>(png_get_io_ptr(to));
        into->insert(into->end(), bytes, bytes + count);
      },
      nullptr);
  png_set_user_limits(writer, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_IHDR(writer, info, width, height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(writer, info);
  const uint8_t row_data[] = {0, 0, 0, 0};
  png_write_chunk(writer, reinterpret_cast<const uint8_t*>("IDAT"), row_data, sizeof(row_data));
  png_destroy_write_struct(&writer, &info);
  return png;
}

// The bytes of the JPEG's frame header, from its marker on.
inline std::vector<uint8_t>::iterator FrameOf(std::vector<uint8_t>& jpeg) {
  const std::vector<uint8_t> start_of_frame = {0xff, 0xc0};
  const auto frame =
      std::search(jpeg.begin(), jpeg.end(), start_of_frame.begin(), start_of_frame.end());
  return frame;
}

// Strips, or tiles of `tile` pixels a side. By planes means all reds, then all greens.
struct TiffFileForm {
  int tile = 0;
  bool by_planes = false;
  int packing = COMPRESSION_LZW;
  int orientation = 1;
};
inline std::vector<uint8_t> TiffFile(const Picture& picture, const TiffFileForm& form = {}) {
  const TemporaryFolder folder;
  const std::string path = folder.File("written.tif");
  TIFF* const tiff = TIFFOpen(path.c_str(), "w");
  const auto width = static_cast<uint32_t>(picture.width);
  const auto height = static_cast<uint32_t>(picture.height);
  const auto channels = static_cast<uint32_t>(picture.channels);
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, height);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, channels);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, channels == 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, form.packing);
  TIFFSetField(tiff, TIFFTAG_ORIENTATION, form.orientation);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG,
               form.by_planes ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  const auto side = static_cast<uint32_t>(form.tile);
  if (side > 0) {
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, side);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, side);
  } else {
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 4);
  }
  // A part of a row of the picture, or of one of its planes.
  const auto row_of = [&](int64_t y, int64_t left, int64_t count, uint32_t plane) {
    std::vector<uint8_t> row;
    for (int64_t x = left; x < left + count; ++x) {
      for (uint32_t c = 0; c < channels; ++c) {
        if (form.by_planes && c != plane) continue;
        const bool inside = x < picture.width && y < picture.height;
        row.push_back(inside ? picture.row(y)[x * picture.channels + c] : 0);
      }
    }
    return row;
  };
  for (uint32_t plane = 0; plane < (form.by_planes ? channels : 1); ++plane) {
    for (uint32_t y = 0; side == 0 && y < height; ++y) {
      std::vector<uint8_t> row = row_of(y, 0, width, plane);
      TIFFWriteScanline(tiff, row.data(), y, static_cast<uint16_t>(plane));
    }
    for (uint32_t top = 0; side > 0 && top < height; top += side) {
      for (uint32_t left = 0; left < width; left += side) {
        std::vector<uint8_t> tile;
        for (uint32_t y = top; y < top + side; ++y) {
          const std::vector<uint8_t> row = row_of(y, left, side, plane);
          tile.insert(tile.end(), row.begin(), row.end());
        }
        TIFFWriteTile(tiff, tile.data(), left, top, 0, static_cast<uint16_t>(plane));
      }
    }
  }
  TIFFClose(tiff);
  return FileBytes(path);
}

// The picture has three channels.
inline std::vector<uint8_t> WebpFile(const Picture& picture, bool lossless = true) {
  uint8_t* bytes = nullptr;
  const auto height = static_cast<int>(picture.height), width = static_cast<int>(picture.width);
  const auto stride = static_cast<int>(picture.row_bytes());
  const size_t size =
      lossless ? WebPEncodeLosslessRGB(picture.bytes.data(), width, height, stride, &bytes)
               : WebPEncodeRGB(picture.bytes.data(), width, height, stride, 80, &bytes);
  std::vector<uint8_t> file(bytes, bytes + size);
  WebPFree(bytes);
  return file;
}

// The process's peak of memory during `work`, above its memory before.
inline int64_t PeakBytesOf(const std::function<void()>& work) {
  const auto status = [](const std::string& field) {
    std::ifstream lines("/proc/self/status");
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(field)) return std::stoll(line.substr(field.size())) * 1024;
    }
    return -1LL;
  };
  malloc_trim(0);  // otherwise memory freed before would be taken again unseen
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts again from here
  const int64_t before = status("VmRSS:");
  work();
  return status("VmHWM:") - before;
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_PICTURES_PICTURE_TESTING_H_
