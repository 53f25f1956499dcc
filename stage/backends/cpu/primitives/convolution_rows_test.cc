// Parts of an image are convolutions of their own: each reads and makes what the whole does, row
// for row.
#include "stage/backends/cpu/primitives/convolution_rows.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace stagecoach::cpu {
namespace {

struct Rows {
  WindowShape window;
  std::string name;
};

std::vector<Rows> Windows() {
  std::vector<Rows> all;
  for (const int64_t height : {1, 5, 8, 17}) {
    for (const int64_t size : {1, 2, 3, 5}) {
      for (const int64_t stride : {1, 2, 3}) {
        for (const int64_t padding : {0, 1, 2, 4}) {
          for (const int64_t dilation : {1, 2}) {
            const int64_t free = height + 2 * padding - (size - 1) * dilation - 1;
            if (free < 0) continue;
            WindowShape w{};
            w.height = height;
            w.places_height = free / stride + 1;
            w.size_height = size;
            w.stride_height = stride;
            w.padding_height = padding;
            w.dilation_height = dilation;
            all.push_back({w, absl::StrCat(height, " rows, window ", size, ", stride ", stride,
                                           ", padding ", padding, ", dilation ", dilation)});
          }
        }
      }
    }
  }
  return all;
}

// (place, tap, row of the image) for all that is not padding.
using Reads = std::set<std::vector<int64_t>>;
Reads ReadsOf(const WindowShape& w) {
  Reads reads;
  for (int64_t place = 0; place < w.places_height; ++place) {
    for (int64_t tap = 0; tap < w.size_height; ++tap) {
      const int64_t row = place * w.stride_height - w.padding_height + tap * w.dilation_height;
      if (0 <= row && row < w.height) reads.insert({place, tap, row});
    }
  }
  return reads;
}

// Those of a part, by the whole's numbers.
Reads ReadsOf(const WindowShape& whole, const RowPart& part) {
  ConvolutionShape shape{};
  shape.window = whole;
  Reads reads;
  for (const std::vector<int64_t>& read : ReadsOf(ShapeOfPart(shape, part).window)) {
    reads.insert({read[0] + part.first_place, read[1], read[2] + part.first_image});
  }
  return reads;
}

TEST(ConvolutionRows, PartsOfThePlacesReadWhatTheWholeReads) {
  int cut = 0;
  for (const Rows& rows : Windows()) {
    SCOPED_TRACE(rows.name);
    const WindowShape& w = rows.window;
    for (const int64_t each : {1, 2, 3, 7}) {
      const std::vector<RowPart> parts = CutIntoParts(w, w.places_height, each, PartOfPlaces);
      if (parts.empty()) continue;
      ++cut;
      Reads all;
      int64_t places = 0;
      for (const RowPart& part : parts) {
        EXPECT_EQ(part.first_place, places) << "each place once";
        places += part.places_rows;
        all.merge(ReadsOf(w, part));
      }
      EXPECT_EQ(places, w.places_height);
      EXPECT_EQ(all, ReadsOf(w)) << "parts of " << each;
    }
  }
  EXPECT_GT(cut, 500);
}

TEST(ConvolutionRows, PartsOfTheImageAreReadByThePlacesThatReadThemInTheWhole) {
  int cut = 0;
  for (const Rows& rows : Windows()) {
    SCOPED_TRACE(rows.name);
    const WindowShape& w = rows.window;
    for (const int64_t each : {w.stride_height, 2 * w.stride_height, 4 * w.stride_height}) {
      const std::vector<RowPart> parts = CutIntoParts(w, w.height, each, PartOfImage);
      if (parts.empty()) continue;
      ++cut;
      Reads all;
      int64_t row = 0;
      for (const RowPart& part : parts) {
        EXPECT_EQ(part.first_image, row) << "each row once";
        row += part.image_rows;
        all.merge(ReadsOf(w, part));
      }
      EXPECT_EQ(row, w.height);
      EXPECT_EQ(all, ReadsOf(w)) << "parts of " << each;
    }
  }
  EXPECT_GT(cut, 300);
}

TEST(ConvolutionRows, RowsThatReadOnlyPaddingAreNoConvolution) {
  WindowShape w{};
  w.height = 5;
  w.places_height = 13;
  w.size_height = 1;
  w.stride_height = w.dilation_height = 1;
  w.padding_height = 4;
  EXPECT_FALSE(PartOfPlaces(w, 0, 4).has_value());
  EXPECT_TRUE(CutIntoParts(w, w.places_height, 4, PartOfPlaces).empty());
  EXPECT_EQ(CutIntoParts(w, w.places_height, 8, PartOfPlaces).size(), 2u);
}

}  // namespace
}  // namespace stagecoach::cpu
