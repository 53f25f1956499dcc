// A thread an element of what comes out; neighbours have neighbouring channels.
#include "stage/backends/cuda/kernels/images/pool.h"
#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {
namespace {

// Where an element of [samples, rows, columns, channels] is.
struct Place {
  int64_t sample, row, column, channel;
};
__device__ __forceinline__ Place PlaceOf(int64_t element, int64_t rows, int64_t columns,
                                         int64_t channels) {
  const int64_t pixel = element / channels;
  return {pixel / (rows * columns), pixel / columns % rows, pixel % columns, element % channels};
}

struct Range {
  int64_t first, last;
};
// Taps inside of the image for the window at `place`, and places whose window covers `at`.
__device__ __forceinline__ Range Taps(int64_t place, int64_t stride, int64_t padding, int64_t size,
                                      int64_t extent) {
  const int64_t start = place * stride - padding;
  return {start < 0 ? -start : 0, size < extent - start ? size : extent - start};
}
__device__ __forceinline__ Range Over(int64_t at, int64_t stride, int64_t padding, int64_t size,
                                      int64_t places) {
  const int64_t end = (at + padding) / stride + 1, before = at + padding - size;
  return {before < 0 ? 0 : before / stride + 1, places < end ? places : end};
}
__device__ __forceinline__ Range RowTaps(const WindowShape& s, int64_t i) {
  return Taps(i, s.stride_height, s.padding_height, s.size_height, s.height);
}
__device__ __forceinline__ Range ColumnTaps(const WindowShape& s, int64_t j) {
  return Taps(j, s.stride_width, s.padding_width, s.size_width, s.width);
}
__device__ __forceinline__ Range RowsOver(const WindowShape& s, int64_t h) {
  return Over(h, s.stride_height, s.padding_height, s.size_height, s.places_height);
}
__device__ __forceinline__ Range ColumnsOver(const WindowShape& s, int64_t w) {
  return Over(w, s.stride_width, s.padding_width, s.size_width, s.places_width);
}
// Element of x that the window at p reads with tap (u, v).
__device__ __forceinline__ int64_t TapElement(const WindowShape& s, const Place& p, int64_t u,
                                              int64_t v) {
  const int64_t row = p.row * s.stride_height - s.padding_height + u;
  const int64_t column = p.column * s.stride_width - s.padding_width + v;
  return ((p.sample * s.height + row) * s.width + column) * s.channels + p.channel;
}
__device__ __forceinline__ int64_t PlaceElement(const WindowShape& s, const Place& at, int64_t i,
                                                int64_t j) {
  return ((at.sample * s.places_height + i) * s.places_width + j) * s.channels + at.channel;
}
__device__ __forceinline__ float Divisor(const WindowShape& s, bool count_padding, int64_t i,
                                         int64_t j) {
  if (count_padding) return static_cast<float>(s.size_height * s.size_width);
  const Range rows = RowTaps(s, i), columns = ColumnTaps(s, j);
  return static_cast<float>((rows.last - rows.first) * (columns.last - columns.first));
}

template <typename T>
__global__ void MaxPoolKernel(WindowShape s, int64_t n, const T* x, T* y, int32_t* choice) {
  for (int64_t e = GlobalThread(); e < n; e += GlobalThreads()) {
    const Place p = PlaceOf(e, s.places_height, s.places_width, s.channels);
    const Range rows = RowTaps(s, p.row), columns = ColumnTaps(s, p.column);
    T best = x[TapElement(s, p, rows.first, columns.first)];
    int64_t chosen = rows.first * s.size_width + columns.first;
    for (int64_t u = rows.first; u < rows.last; ++u) {
      for (int64_t v = columns.first; v < columns.last; ++v) {
        const T value = x[TapElement(s, p, u, v)];
        const float is = ToFloat(value), top = ToFloat(best);
        if (!(is > top || (is != is && top == top))) continue;  // a NaN comes before all else
        best = value;
        chosen = u * s.size_width + v;
      }
    }
    y[e] = best;
    choice[e] = static_cast<int32_t>(chosen);
  }
}

template <typename T>
__global__ void MaxPoolGradientKernel(WindowShape s, int64_t n, const T* dy, const int32_t* choice,
                                      T* dx) {
  for (int64_t e = GlobalThread(); e < n; e += GlobalThreads()) {
    const Place at = PlaceOf(e, s.height, s.width, s.channels);
    const Range rows = RowsOver(s, at.row), columns = ColumnsOver(s, at.column);
    float sum = 0.0f;
    for (int64_t i = rows.first; i < rows.last; ++i) {
      for (int64_t j = columns.first; j < columns.last; ++j) {
        const int64_t u = at.row + s.padding_height - i * s.stride_height;
        const int64_t v = at.column + s.padding_width - j * s.stride_width;
        const int64_t from = PlaceElement(s, at, i, j);
        if (choice[from] == u * s.size_width + v) sum += ToFloat(dy[from]);
      }
    }
    dx[e] = FromFloat<T>(sum);
  }
}

template <typename T>
__global__ void AveragePoolKernel(WindowShape s, bool count_padding, int64_t n, const T* x, T* y) {
  for (int64_t e = GlobalThread(); e < n; e += GlobalThreads()) {
    const Place p = PlaceOf(e, s.places_height, s.places_width, s.channels);
    const Range rows = RowTaps(s, p.row), columns = ColumnTaps(s, p.column);
    float sum = 0.0f;
    for (int64_t u = rows.first; u < rows.last; ++u) {
      for (int64_t v = columns.first; v < columns.last; ++v) {
        sum += ToFloat(x[TapElement(s, p, u, v)]);
      }
    }
    y[e] = FromFloat<T>(sum / Divisor(s, count_padding, p.row, p.column));
  }
}

template <typename T>
__global__ void AveragePoolGradientKernel(WindowShape s, bool count_padding, int64_t n, const T* dy,
                                          T* dx) {
  for (int64_t e = GlobalThread(); e < n; e += GlobalThreads()) {
    const Place at = PlaceOf(e, s.height, s.width, s.channels);
    const Range rows = RowsOver(s, at.row), columns = ColumnsOver(s, at.column);
    float sum = 0.0f;
    for (int64_t i = rows.first; i < rows.last; ++i) {
      for (int64_t j = columns.first; j < columns.last; ++j) {
        sum += ToFloat(dy[PlaceElement(s, at, i, j)]) / Divisor(s, count_padding, i, j);
      }
    }
    dx[e] = FromFloat<T>(sum);
  }
}

template <typename T>
__global__ void GlobalPoolKernel(int64_t samples, int64_t places, int64_t channels, const T* x,
                                 T* y) {
  for (int64_t e = GlobalThread(); e < samples * channels; e += GlobalThreads()) {
    const T* const column = x + e / channels * places * channels + e % channels;
    float sum = 0.0f;
    for (int64_t p = 0; p < places; ++p) sum += ToFloat(column[p * channels]);
    y[e] = FromFloat<T>(sum / static_cast<float>(places));
  }
}

template <typename T>
__global__ void GlobalPoolGradientKernel(int64_t samples, int64_t places, int64_t channels,
                                         const T* dy, T* dx) {
  for (int64_t e = GlobalThread(); e < samples * places * channels; e += GlobalThreads()) {
    const int64_t from = e / (places * channels) * channels + e % channels;
    dx[e] = FromFloat<T>(ToFloat(dy[from]) / static_cast<float>(places));
  }
}

int64_t PlacesOf(const WindowShape& s) {
  return s.samples * s.places_height * s.places_width * s.channels;
}
int64_t PixelsOf(const WindowShape& s) { return s.samples * s.height * s.width * s.channels; }

}  // namespace

template <typename T>
cudaError_t MaxPool(cudaStream_t stream, const WindowShape& shape, const T* x, T* y,
                    int32_t* choice) {
  const int64_t n = PlacesOf(shape);
  return Launch(MaxPoolKernel<T>, ElementLaunch(n), 0, stream, shape, n, x, y, choice);
}
template <typename T>
cudaError_t MaxPoolGradient(cudaStream_t stream, const WindowShape& shape, const T* dy,
                            const int32_t* choice, T* dx) {
  const int64_t n = PixelsOf(shape);
  return Launch(MaxPoolGradientKernel<T>, ElementLaunch(n), 0, stream, shape, n, dy, choice, dx);
}
template <typename T>
cudaError_t AveragePool(cudaStream_t stream, const WindowShape& shape, bool count_padding,
                        const T* x, T* y) {
  const int64_t n = PlacesOf(shape);
  return Launch(AveragePoolKernel<T>, ElementLaunch(n), 0, stream, shape, count_padding, n, x, y);
}
template <typename T>
cudaError_t AveragePoolGradient(cudaStream_t stream, const WindowShape& shape, bool count_padding,
                                const T* dy, T* dx) {
  const int64_t n = PixelsOf(shape);
  return Launch(AveragePoolGradientKernel<T>, ElementLaunch(n), 0, stream, shape, count_padding, n,
                dy, dx);
}
template <typename T>
cudaError_t GlobalAveragePool(cudaStream_t stream, int64_t samples, int64_t places,
                              int64_t channels, const T* x, T* y) {
  return Launch(GlobalPoolKernel<T>, ElementLaunch(samples * channels), 0, stream, samples, places,
                channels, x, y);
}
template <typename T>
cudaError_t GlobalAveragePoolGradient(cudaStream_t stream, int64_t samples, int64_t places,
                                      int64_t channels, const T* dy, T* dx) {
  return Launch(GlobalPoolGradientKernel<T>, ElementLaunch(samples * places * channels), 0, stream,
                samples, places, channels, dy, dx);
}

#define STAGECOACH_INSTANTIATE(T)                                                                  \
  template cudaError_t MaxPool(cudaStream_t, const WindowShape&, const T*, T*, int32_t*);          \
  template cudaError_t MaxPoolGradient(cudaStream_t, const WindowShape&, const T*, const int32_t*, \
                                       T*);                                                        \
  template cudaError_t AveragePool(cudaStream_t, const WindowShape&, bool, const T*, T*);          \
  template cudaError_t AveragePoolGradient(cudaStream_t, const WindowShape&, bool, const T*, T*);  \
  template cudaError_t GlobalAveragePool(cudaStream_t, int64_t, int64_t, int64_t, const T*, T*);   \
  template cudaError_t GlobalAveragePoolGradient(cudaStream_t, int64_t, int64_t, int64_t,          \
                                                 const T*, T*)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
