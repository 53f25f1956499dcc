// A convolution of one image cut into rows, so that a few images are work for many threads. A part
// is some rows of places with the rows of the image that they read. For an image's gradient it is
// some of its rows with the places that contribute to them.
// Units:     rows from the top; a part's rows lie one after the other in memory, with nothing
//            between.
// Threads:   pure functions.
// Determinism: the cut follows from the shape alone. No sum is cut: each element is computed within
//            one part.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_CONVOLUTION_ROWS_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_CONVOLUTION_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "stage/backends/window_shape.h"

namespace stagecoach::cpu {

struct RowPart {
  int64_t first_image = 0, image_rows = 0;   // rows of the image
  int64_t first_place = 0, places_rows = 0;  // rows of places
  int64_t padding = 0;                       // above the part's first row
};

// The convolution that one call computes of `whole`.
inline ConvolutionShape ShapeOfPart(const ConvolutionShape& whole, const RowPart& part) {
  ConvolutionShape shape = whole;
  shape.window.samples = 1;
  shape.window.height = part.image_rows;
  shape.window.places_height = part.places_rows;
  shape.window.padding_height = part.padding;
  return shape;
}

// The part that makes rows [first, end) of the places; none if these read only padding.
inline std::optional<RowPart> PartOfPlaces(const WindowShape& w, int64_t first, int64_t end) {
  const int64_t reach = (w.size_height - 1) * w.dilation_height + 1;
  const int64_t above = first * w.stride_height - w.padding_height;
  const int64_t low = std::max<int64_t>(0, above);
  const int64_t high = std::min(w.height, (end - 1) * w.stride_height - w.padding_height + reach);
  if (high <= low) return std::nullopt;
  return RowPart{low, high - low, first, end - first, low - above};
}

// The part that makes rows [first, end) of the image. None if no window reaches them, or if their
// first row lies between two windows.
inline std::optional<RowPart> PartOfImage(const WindowShape& w, int64_t first, int64_t end) {
  const int64_t reach = (w.size_height - 1) * w.dilation_height;
  const int64_t behind = std::max<int64_t>(0, first + w.padding_height - reach);
  const int64_t low = (behind + w.stride_height - 1) / w.stride_height;
  const int64_t high =
      std::min(w.places_height, (end - 1 + w.padding_height) / w.stride_height + 1);
  const int64_t padding = first + w.padding_height - low * w.stride_height;
  if (high <= low || padding < 0) return std::nullopt;
  return RowPart{first, end - first, low, high - low, padding};
}

// Parts of `rows` rows each; the last one has the rest. Empty if a part cannot be a convolution of
// its own.
template <typename Part>  // PartOfPlaces or PartOfImage
std::vector<RowPart> CutIntoParts(const WindowShape& w, int64_t all, int64_t rows, Part part) {
  std::vector<RowPart> parts;
  for (int64_t first = 0; first < all; first += rows) {
    const std::optional<RowPart> made = part(w, first, std::min(all, first + rows));
    if (!made.has_value()) return {};
    parts.push_back(*made);
  }
  return parts;
}

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_CONVOLUTION_ROWS_H_
