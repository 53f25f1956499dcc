#include "stage/pictures/resample.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/errors/check.h"
#include "base/numbers/resampling.h"

namespace stagecoach {
namespace {

constexpr int kFractionBits = 22;

// Of one new row or column: which old ones it is a mean of, and by what weights.
struct Taps {
  int64_t first = 0;
  std::vector<int32_t> weights;
};

// Of the new ones [kept, kept + count), where there are `to` in all.
std::vector<Taps> TapsOf(int64_t from, int64_t to, int64_t kept, int64_t count) {
  std::vector<Taps> all(static_cast<size_t>(count));
  std::vector<double> weights;
  for (int64_t i = kept; i < kept + count; ++i) {
    Taps& taps = all[static_cast<size_t>(i - kept)];
    taps.first = ResamplingWeights(ResamplingFilter::kTriangle, from, to, i, &weights);
    for (const double weight : weights) {
      taps.weights.push_back(static_cast<int32_t>(0.5 + weight * (1 << kFractionBits)));
    }
  }
  return all;
}

uint8_t Rounded(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}
constexpr int32_t kHalf = 1 << (kFractionBits - 1);

template <int kChannels>
void AlongRow(const uint8_t* from, const std::vector<Taps>& columns, uint8_t* to) {
  for (const Taps& taps : columns) {
    int32_t sums[kChannels];
    std::fill_n(sums, kChannels, kHalf);
    const uint8_t* pixel = from + taps.first * kChannels;
    for (const int32_t weight : taps.weights) {
      for (int c = 0; c < kChannels; ++c) sums[c] += pixel[c] * weight;
      pixel += kChannels;
    }
    for (int c = 0; c < kChannels; ++c) *to++ = Rounded(sums[c]);
  }
}

// Images of IDX files may have any number of channels.
void AlongRowOf(int64_t channels, const uint8_t* from, const std::vector<Taps>& columns,
                uint8_t* to) {
  for (const Taps& taps : columns) {
    for (int64_t c = 0; c < channels; ++c) {
      int32_t sum = kHalf;
      for (size_t i = 0; i < taps.weights.size(); ++i) {
        sum += from[(taps.first + static_cast<int64_t>(i)) * channels + c] * taps.weights[i];
      }
      *to++ = Rounded(sum);
    }
  }
}

Picture AlongRows(const Picture& picture, const PictureBox& box, const std::vector<Taps>& columns) {
  Picture result(box.height, std::ssize(columns), picture.channels);
  for (int64_t y = 0; y < box.height; ++y) {
    const uint8_t* const from = picture.row(box.top + y) + box.left * picture.channels;
    if (picture.channels == 3) {
      AlongRow<3>(from, columns, result.row(y));
    } else if (picture.channels == 1) {
      AlongRow<1>(from, columns, result.row(y));
    } else {
      AlongRowOf(picture.channels, from, columns, result.row(y));
    }
  }
  return result;
}

// The picture's first row is row `first` of those that the taps count.
Picture AlongColumns(const Picture& picture, int64_t first, const std::vector<Taps>& rows) {
  Picture result(std::ssize(rows), picture.width, picture.channels);
  std::vector<int32_t> sums(picture.row_bytes());
  for (int64_t y = 0; y < result.height; ++y) {
    const Taps& taps = rows[static_cast<size_t>(y)];
    std::fill(sums.begin(), sums.end(), kHalf);
    for (size_t i = 0; i < taps.weights.size(); ++i) {
      const uint8_t* const from = picture.row(taps.first - first + static_cast<int64_t>(i));
      const int32_t weight = taps.weights[i];
      for (size_t x = 0; x < sums.size(); ++x) sums[x] += from[x] * weight;
    }
    uint8_t* const to = result.row(y);
    for (size_t x = 0; x < sums.size(); ++x) to[x] = Rounded(sums[x]);
  }
  return result;
}

// Python's round: halves go to the even number.
int64_t HalfOf(int64_t count) {
  const int64_t half = count / 2;
  return count % 2 != 0 && half % 2 != 0 ? half + 1 : half;
}

PictureBox WithoutLongEnds(const Picture& picture) {
  const int64_t height = std::min(picture.height, picture.width * kMostAspect);
  const int64_t width = std::min(picture.width, picture.height * kMostAspect);
  return {.top = HalfOf(picture.height - height),
          .left = HalfOf(picture.width - width),
          .height = height,
          .width = width};
}

// The middle [height, width] of what the box becomes as [rows, columns].
PictureFit MiddleOf(const PictureBox& box, int64_t rows, int64_t columns, int64_t height,
                    int64_t width) {
  CHECK(rows >= height && columns >= width);
  return {.box = box,
          .rows = rows,
          .columns = columns,
          .part = {.top = HalfOf(rows - height),
                   .left = HalfOf(columns - width),
                   .height = height,
                   .width = width}};
}

Picture Fitted(const Picture& picture, const PictureFit& fit) {
  return ResamplePart(picture, fit.box, fit.rows, fit.columns, fit.part);
}

}  // namespace

Picture Crop(const Picture& picture, const PictureBox& box) {
  CHECK(box.top >= 0 && box.left >= 0 && box.top + box.height <= picture.height &&
        box.left + box.width <= picture.width);
  Picture result(box.height, box.width, picture.channels);
  for (int64_t y = 0; y < box.height; ++y) {
    std::copy_n(picture.row(box.top + y) + box.left * picture.channels, result.row_bytes(),
                result.row(y));
  }
  return result;
}

Picture Resample(const Picture& picture, const PictureBox& box, int64_t height, int64_t width) {
  return ResamplePart(picture, box, height, width, {.height = height, .width = width});
}

Picture ResamplePart(const Picture& picture, const PictureBox& box, int64_t height, int64_t width,
                     const PictureBox& part) {
  CHECK(part.height >= 1 && part.width >= 1 && box.height >= 1 && box.width >= 1);
  CHECK(box.top >= 0 && box.left >= 0 && box.top + box.height <= picture.height &&
        box.left + box.width <= picture.width);
  CHECK(part.top >= 0 && part.left >= 0 && part.top + part.height <= height &&
        part.left + part.width <= width);
  std::vector<Taps> rows;
  // The rows of the box that the part is made of.
  int64_t first = part.top, end = part.top + part.height;
  if (box.height != height) {
    rows = TapsOf(box.height, height, part.top, part.height);
    first = rows.front().first;
    end = rows.back().first + std::ssize(rows.back().weights);
  }
  PictureBox read = box;
  read.top += first;
  read.height = end - first;
  Picture result;
  if (box.width != width) {
    result = AlongRows(picture, read, TapsOf(box.width, width, part.left, part.width));
  } else {
    read.left += part.left;
    read.width = part.width;
    result = Crop(picture, read);
  }
  return box.height == height ? result : AlongColumns(result, first, rows);
}

Picture NearestPart(const Picture& picture, const PictureBox& box, int64_t height, int64_t width,
                    const PictureBox& part) {
  CHECK(box.top >= 0 && box.left >= 0 && box.top + box.height <= picture.height &&
        box.left + box.width <= picture.width);
  CHECK(part.top >= 0 && part.left >= 0 && part.top + part.height <= height &&
        part.left + part.width <= width);
  // floor((i + 1/2) * from / to)
  const auto nearest = [](int64_t i, int64_t from, int64_t to) {
    return (2 * i + 1) * from / (2 * to);
  };
  Picture result(part.height, part.width, picture.channels);
  for (int64_t y = 0; y < part.height; ++y) {
    const uint8_t* const from = picture.row(box.top + nearest(part.top + y, box.height, height));
    for (int64_t x = 0; x < part.width; ++x) {
      const int64_t column = box.left + nearest(part.left + x, box.width, width);
      std::copy_n(from + column * picture.channels, picture.channels,
                  result.row(y) + x * picture.channels);
    }
  }
  return result;
}

PictureFit ShorterSideFit(const Picture& picture, int64_t shorter, int64_t height, int64_t width) {
  CHECK(shorter >= height && shorter >= width);
  const PictureBox all = WithoutLongEnds(picture);
  const bool tall = all.width <= all.height;
  const int64_t longer = tall ? shorter * all.height / all.width : shorter * all.width / all.height;
  return MiddleOf(all, tall ? longer : shorter, tall ? shorter : longer, height, width);
}

PictureFit CoveringFit(const Picture& picture, int64_t height, int64_t width) {
  const PictureBox whole{.height = picture.height, .width = picture.width};
  if (picture.height == height && picture.width == width) {
    return {.box = whole, .rows = height, .columns = width, .part = whole};
  }
  const PictureBox all = WithoutLongEnds(picture);
  // Which side is the one that is just covered.
  const bool by_width = height * all.width <= width * all.height;
  const int64_t rows = by_width ? width * all.height / all.width : height;
  const int64_t columns = by_width ? width : height * all.width / all.height;
  return MiddleOf(all, std::max(rows, height), std::max(columns, width), height, width);
}

Picture FitByShorterSide(const Picture& picture, int64_t shorter, int64_t height, int64_t width) {
  return Fitted(picture, ShorterSideFit(picture, shorter, height, width));
}

Picture FitToCover(const Picture& picture, int64_t height, int64_t width) {
  return Fitted(picture, CoveringFit(picture, height, width));
}

}  // namespace stagecoach
