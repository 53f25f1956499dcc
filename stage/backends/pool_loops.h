// Pools by plain loops, channels innermost, for back ends on the host. T: the type of the
// activations; sums are of type Sum, rounded once.
// Threads: pure functions of their arguments; a caller gives each thread rows of its own.
#ifndef STAGECOACH_STAGE_BACKENDS_POOL_LOOPS_H_
#define STAGECOACH_STAGE_BACKENDS_POOL_LOOPS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "stage/backends/window_shape.h"

namespace stagecoach {

// Taps of one extent that lie in the image, for the window at `place`.
struct TapRange {
  int64_t first, last;  // [first, last)
};
inline TapRange TapsInside(int64_t place, int64_t stride, int64_t padding, int64_t size,
                           int64_t extent) {
  const int64_t start = place * stride - padding;
  return {std::max<int64_t>(0, -start), std::min(size, extent - start)};
}
// Places of one extent whose window covers `at`.
inline TapRange PlacesOver(int64_t at, int64_t stride, int64_t padding, int64_t size,
                           int64_t places) {
  const int64_t last = (at + padding) / stride;
  const int64_t before = at + padding - size;  // the last place that ends before `at`
  return {before < 0 ? 0 : before / stride + 1, std::min(places, last + 1)};
}

inline TapRange RowTaps(const WindowShape& s, int64_t i) {
  return TapsInside(i, s.stride_height, s.padding_height, s.size_height, s.height);
}
inline TapRange ColumnTaps(const WindowShape& s, int64_t j) {
  return TapsInside(j, s.stride_width, s.padding_width, s.size_width, s.width);
}

// The divisor of a sum over the window at (i, j).
inline double PoolDivisor(const WindowShape& s, bool count_padding, int64_t i, int64_t j) {
  if (count_padding) return static_cast<double>(s.size_height * s.size_width);
  const TapRange rows = RowTaps(s, i), columns = ColumnTaps(s, j);
  return static_cast<double>((rows.last - rows.first) * (columns.last - columns.first));
}

// Without branches, which would be mispredicted. A NaN (x != x) counts as the largest.
template <typename T>
void TakeLarger(const T* __restrict x, int32_t tap, T* __restrict y, int32_t* __restrict choice,
                int64_t n) {
  for (int64_t c = 0; c < n; ++c) {
    const auto is = static_cast<float>(x[c]), best = static_cast<float>(y[c]);
    const bool better = (is > best) | ((is != is) & (best == best));
    y[c] = better ? x[c] : y[c];
    choice[c] = better ? tap : choice[c];
  }
}

// Row i of the places of one sample; x is the sample's image.
template <typename T>
void MaxPoolRow(const WindowShape& s, int64_t i, const T* x, T* y, int32_t* choice) {
  const TapRange rows = RowTaps(s, i);
  for (int64_t j = 0; j < s.places_width; ++j, y += s.channels, choice += s.channels) {
    const TapRange columns = ColumnTaps(s, j);
    bool first = true;
    for (int64_t u = rows.first; u < rows.last; ++u) {
      for (int64_t v = columns.first; v < columns.last; ++v) {
        const int64_t at = (i * s.stride_height - s.padding_height + u) * s.width +
                           j * s.stride_width - s.padding_width + v;
        const auto tap = static_cast<int32_t>(u * s.size_width + v);
        if (first) {
          std::copy_n(x + at * s.channels, s.channels, y);
          std::fill_n(choice, s.channels, tap);
          first = false;
        } else {
          TakeLarger(x + at * s.channels, tap, y, choice, s.channels);
        }
      }
    }
  }
}

// Row h of one sample's image: each element gets the gradients of the places that chose it.
template <typename Sum, typename T>
void MaxPoolGradientRow(const WindowShape& s, int64_t h, const T* dy, const int32_t* choice, T* dx,
                        std::vector<Sum>& sums) {
  const TapRange rows =
      PlacesOver(h, s.stride_height, s.padding_height, s.size_height, s.places_height);
  for (int64_t w = 0; w < s.width; ++w, dx += s.channels) {
    sums.assign(s.channels, Sum{0});
    const TapRange columns =
        PlacesOver(w, s.stride_width, s.padding_width, s.size_width, s.places_width);
    for (int64_t i = rows.first; i < rows.last; ++i) {
      const int64_t u = h + s.padding_height - i * s.stride_height;
      for (int64_t j = columns.first; j < columns.last; ++j) {
        const int64_t v = w + s.padding_width - j * s.stride_width;
        const int64_t at = (i * s.places_width + j) * s.channels;
        for (int64_t c = 0; c < s.channels; ++c) {
          if (choice[at + c] == u * s.size_width + v) sums[c] += static_cast<float>(dy[at + c]);
        }
      }
    }
    for (int64_t c = 0; c < s.channels; ++c) dx[c] = T(static_cast<float>(sums[c]));
  }
}

template <typename Sum, typename T>
void AveragePoolRow(const WindowShape& s, bool count_padding, int64_t i, const T* x, T* y,
                    std::vector<Sum>& sums) {
  const TapRange rows = RowTaps(s, i);
  for (int64_t j = 0; j < s.places_width; ++j, y += s.channels) {
    const TapRange columns = ColumnTaps(s, j);
    sums.assign(s.channels, Sum{0});
    for (int64_t u = rows.first; u < rows.last; ++u) {
      for (int64_t v = columns.first; v < columns.last; ++v) {
        const int64_t at = (i * s.stride_height - s.padding_height + u) * s.width +
                           j * s.stride_width - s.padding_width + v;
        for (int64_t c = 0; c < s.channels; ++c) {
          sums[c] += static_cast<float>(x[at * s.channels + c]);
        }
      }
    }
    const auto divisor = static_cast<Sum>(PoolDivisor(s, count_padding, i, j));
    for (int64_t c = 0; c < s.channels; ++c) y[c] = T(static_cast<float>(sums[c] / divisor));
  }
}

template <typename Sum, typename T>
void AveragePoolGradientRow(const WindowShape& s, bool count_padding, int64_t h, const T* dy, T* dx,
                            std::vector<Sum>& sums) {
  const TapRange rows =
      PlacesOver(h, s.stride_height, s.padding_height, s.size_height, s.places_height);
  for (int64_t w = 0; w < s.width; ++w, dx += s.channels) {
    sums.assign(s.channels, Sum{0});
    const TapRange columns =
        PlacesOver(w, s.stride_width, s.padding_width, s.size_width, s.places_width);
    for (int64_t i = rows.first; i < rows.last; ++i) {
      for (int64_t j = columns.first; j < columns.last; ++j) {
        const auto divisor = static_cast<Sum>(PoolDivisor(s, count_padding, i, j));
        const int64_t at = (i * s.places_width + j) * s.channels;
        for (int64_t c = 0; c < s.channels; ++c) {
          sums[c] += static_cast<float>(dy[at + c]) / divisor;
        }
      }
    }
    for (int64_t c = 0; c < s.channels; ++c) dx[c] = T(static_cast<float>(sums[c]));
  }
}

// The mean of one sample with `places` rows of channels.
template <typename Sum, typename T>
void MeanOfPlaces(int64_t places, int64_t channels, const T* x, T* y, std::vector<Sum>& sums) {
  sums.assign(channels, Sum{0});
  for (int64_t p = 0; p < places; ++p) {
    for (int64_t c = 0; c < channels; ++c) sums[c] += static_cast<float>(x[p * channels + c]);
  }
  for (int64_t c = 0; c < channels; ++c) {
    y[c] = T(static_cast<float>(sums[c] / static_cast<Sum>(places)));
  }
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_POOL_LOOPS_H_
