// Convolutions as products: the places of some rows of y, and the columns of x that they read.
// Units and shapes: a column matrix is [places, taps * channels of a group], in the order of a
//            weight's row (operations/images/convolution.h), float32.
// Threads:   pure functions of their arguments.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_CONVOLUTION_CONVOLUTION_COLUMNS_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_CONVOLUTION_CONVOLUTION_COLUMNS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "stage/backends/cpu/vector/kernels.h"
#include "stage/backends/window_shape.h"

namespace stagecoach::cpu {

// Sizes that follow from the shape, and how the work is cut: into blocks of whole rows of places.
struct ConvolutionWork {
  explicit ConvolutionWork(const ConvolutionShape& shape)
      : s(shape),
        in(shape.window.channels / shape.groups),
        out(shape.out / shape.groups),
        taps(shape.window.size_height * shape.window.size_width),
        row(taps * in),
        image(shape.window.height * shape.window.width * shape.window.channels),
        places(shape.window.places_height * shape.window.places_width),
        block_rows(std::clamp<int64_t>(kPlaces / std::max<int64_t>(1, shape.window.places_width), 1,
                                       std::max<int64_t>(1, shape.window.places_height))),
        blocks((shape.window.places_height + block_rows - 1) / block_rows),
        full(block_rows * shape.window.places_width),
        rest(places % full) {}

  // Large enough for a product to run at full speed, small enough for its columns to stay in a
  // cache.
  static constexpr int64_t kPlaces = 128;

  ConvolutionShape s;
  int64_t in, out;    // channels of a group
  int64_t taps, row;  // row: elements of a weight's row, taps * in
  int64_t image, places;
  int64_t block_rows, blocks;
  int64_t full, rest;  // places of a block, and of a smaller last one or 0

  bool depthwise() const { return in == 1 && out == 1; }
  int64_t FirstRow(int64_t block) const { return block * block_rows; }
  int64_t Rows(int64_t block) const {
    return std::min(block_rows, s.window.places_height - FirstRow(block));
  }
};

// Calls body(place of the block, tap, pixel of the image), in ascending order, for taps that lie in
// the image. The block has `rows` rows of places from `first` on.
template <typename Body>
void ForEachTapInside(const WindowShape& w, int64_t first, int64_t rows, Body body) {
  for (int64_t i = first; i < first + rows; ++i) {
    for (int64_t j = 0; j < w.places_width; ++j) {
      const int64_t place = (i - first) * w.places_width + j;
      for (int64_t u = 0; u < w.size_height; ++u) {
        const int64_t row = i * w.stride_height - w.padding_height + u * w.dilation_height;
        if (row < 0 || row >= w.height) continue;
        for (int64_t v = 0; v < w.size_width; ++v) {
          const int64_t column = j * w.stride_width - w.padding_width + v * w.dilation_width;
          if (column < 0 || column >= w.width) continue;
          body(place, u * w.size_width + v, row * w.width + column);
        }
      }
    }
  }
}

// The same by runs. If taps of one row of the window read neighbouring pixels, they become one
// call: body(place, first tap, first pixel, number of taps).
template <typename Body>
void ForEachRunInside(const WindowShape& w, int64_t first, int64_t rows, Body body) {
  if (w.dilation_width != 1) {
    return ForEachTapInside(w, first, rows, [&](int64_t place, int64_t tap, int64_t pixel) {
      body(place, tap, pixel, int64_t{1});
    });
  }
  for (int64_t i = first; i < first + rows; ++i) {
    for (int64_t j = 0; j < w.places_width; ++j) {
      const int64_t start = j * w.stride_width - w.padding_width;
      const int64_t left = std::max<int64_t>(0, -start);
      const int64_t right = std::min(w.size_width, w.width - start);
      if (right <= left) continue;
      for (int64_t u = 0; u < w.size_height; ++u) {
        const int64_t row = i * w.stride_height - w.padding_height + u * w.dilation_height;
        if (row < 0 || row >= w.height) continue;
        body((i - first) * w.places_width + j, u * w.size_width + left,
             row * w.width + start + left, right - left);
      }
    }
  }
}

inline void CopyChannels(const float* from, float* to, int64_t n) {
  std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
}
inline void CopyChannels(const Bfloat16* from, float* to, int64_t n) { Widen(from, to, n); }

// Sets columns to the inputs that a block of one sample's places reads of a group.
template <typename T>
void TakeColumns(const ConvolutionWork& work, const T* image, int64_t group, int64_t block,
                 float* columns) {
  const WindowShape& w = work.s.window;
  const int64_t rows = work.Rows(block);
  std::fill_n(columns, rows * w.places_width * work.row, 0.0f);
  const auto take = [&](int64_t place, int64_t tap, int64_t pixel, int64_t taps) {
    CopyChannels(image + pixel * w.channels + group * work.in,
                 columns + place * work.row + tap * work.in, taps * work.in);
  };
  if (work.s.groups == 1) return ForEachRunInside(w, work.FirstRow(block), rows, take);
  ForEachTapInside(w, work.FirstRow(block), rows,
                   [&](int64_t place, int64_t tap, int64_t pixel) { take(place, tap, pixel, 1); });
}

// The inverse of TakeColumns, adding: each pixel gets the sum of the columns that read it.
inline void AddColumns(const ConvolutionWork& work, const float* columns, int64_t group,
                       int64_t block, float* image) {
  const WindowShape& w = work.s.window;
  const auto add = [&](int64_t place, int64_t tap, int64_t pixel, int64_t taps) {
    AddTo(columns + place * work.row + tap * work.in, image + pixel * w.channels + group * work.in,
          taps * work.in);
  };
  const int64_t first = work.FirstRow(block), rows = work.Rows(block);
  if (work.s.groups == 1) return ForEachRunInside(w, first, rows, add);
  ForEachTapInside(w, first, rows,
                   [&](int64_t place, int64_t tap, int64_t pixel) { add(place, tap, pixel, 1); });
}

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_CONVOLUTION_CONVOLUTION_COLUMNS_H_
