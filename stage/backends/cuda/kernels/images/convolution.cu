// Direct convolutions without a library: a thread an element of y or dx, a block an element of the
// weight's gradient, whose places its threads share in a fixed order. What is asked of them is the
// right numbers and the same bits again; a library's kernels are many times faster on large images.
#include "stage/backends/cuda/kernels/images/convolution.h"
#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {
namespace {

// First channel that output o reads, and how many.
__device__ __forceinline__ int64_t InOfGroup(const ConvolutionShape& s) {
  return s.window.channels / s.groups;
}
__device__ __forceinline__ int64_t OutOfGroup(const ConvolutionShape& s) {
  return s.out / s.groups;
}

// Row (or column) of the image that a tap reads.
__device__ __forceinline__ int64_t RowOf(const WindowShape& w, int64_t i, int64_t u) {
  return i * w.stride_height - w.padding_height + u * w.dilation_height;
}
__device__ __forceinline__ int64_t ColumnOf(const WindowShape& w, int64_t j, int64_t v) {
  return j * w.stride_width - w.padding_width + v * w.dilation_width;
}

template <typename T>
__global__ void ConvolutionKernel(ConvolutionShape s, int64_t n, const T* x, const T* weight,
                                  const T* bias, T* y) {
  const WindowShape& w = s.window;
  const int64_t in = InOfGroup(s);
  for (int64_t e = GlobalThread(); e < n; e += GlobalThreads()) {
    const int64_t o = e % s.out, place = e / s.out;
    const int64_t i = place / w.places_width % w.places_height, j = place % w.places_width;
    const int64_t sample = place / (w.places_width * w.places_height);
    const int64_t first = o / OutOfGroup(s) * in;
    float sum = 0.0f;
    for (int64_t u = 0; u < w.size_height; ++u) {
      const int64_t row = RowOf(w, i, u);
      if (row < 0 || row >= w.height) continue;
      for (int64_t v = 0; v < w.size_width; ++v) {
        const int64_t column = ColumnOf(w, j, v);
        if (column < 0 || column >= w.width) continue;
        const T* const pixel =
            x + ((sample * w.height + row) * w.width + column) * w.channels + first;
        const T* const tap = weight + ((o * w.size_height + u) * w.size_width + v) * in;
        for (int64_t c = 0; c < in; ++c) sum += ToFloat(pixel[c]) * ToFloat(tap[c]);
      }
    }
    if (bias != nullptr) sum += ToFloat(bias[o]);
    y[e] = FromFloat<T>(sum);
  }
}

// Index of the place whose tap reads `at`; -1 where there is none.
__device__ __forceinline__ int64_t PlaceReading(int64_t at, int64_t tap, int64_t stride,
                                                int64_t places) {
  const int64_t start = at - tap;
  if (start < 0 || start % stride != 0 || start / stride >= places) return -1;
  return start / stride;
}

template <typename T>
__global__ void ConvolutionInputGradientKernel(ConvolutionShape s, int64_t n, const T* dy,
                                               const T* weight, T* dx) {
  const WindowShape& w = s.window;
  const int64_t in = InOfGroup(s), out = OutOfGroup(s);
  for (int64_t e = GlobalThread(); e < n; e += GlobalThreads()) {
    const int64_t c = e % w.channels, pixel = e / w.channels;
    const int64_t row = pixel / w.width % w.height, column = pixel % w.width;
    const int64_t sample = pixel / (w.width * w.height), group = c / in;
    float sum = 0.0f;
    for (int64_t u = 0; u < w.size_height; ++u) {
      const int64_t i = PlaceReading(row + w.padding_height, u * w.dilation_height, w.stride_height,
                                     w.places_height);
      if (i < 0) continue;
      for (int64_t v = 0; v < w.size_width; ++v) {
        const int64_t j = PlaceReading(column + w.padding_width, v * w.dilation_width,
                                       w.stride_width, w.places_width);
        if (j < 0) continue;
        const T* const place =
            dy + ((sample * w.places_height + i) * w.places_width + j) * s.out + group * out;
        const int64_t first = group * out * w.size_height * w.size_width;
        const T* const taps = weight + (first + u * w.size_width + v) * in + c % in;
        for (int64_t o = 0; o < out; ++o) {
          sum += ToFloat(place[o]) * ToFloat(taps[o * w.size_height * w.size_width * in]);
        }
      }
    }
    dx[e] = FromFloat<T>(sum);
  }
}

// A block an element of the weight.
template <typename T>
__global__ void ConvolutionWeightGradientKernel(ConvolutionShape s, int64_t n, const T* dy,
                                                const T* x, float* d_weight) {
  __shared__ float shared[32];
  const WindowShape& w = s.window;
  const int64_t in = InOfGroup(s), places = w.samples * w.places_height * w.places_width;
  for (int64_t e = blockIdx.x; e < n; e += gridDim.x) {
    const int64_t c = e % in, tap = e / in % (w.size_height * w.size_width);
    const int64_t o = e / (in * w.size_height * w.size_width);
    const int64_t channel = o / OutOfGroup(s) * in + c;
    float sum = 0.0f;
    for (int64_t p = threadIdx.x; p < places; p += blockDim.x) {
      const int64_t i = p / w.places_width % w.places_height, j = p % w.places_width;
      const int64_t sample = p / (w.places_width * w.places_height);
      const int64_t row = RowOf(w, i, tap / w.size_width);
      const int64_t column = ColumnOf(w, j, tap % w.size_width);
      if (row < 0 || row >= w.height || column < 0 || column >= w.width) continue;
      sum += ToFloat(dy[p * s.out + o]) *
             ToFloat(x[((sample * w.height + row) * w.width + column) * w.channels + channel]);
    }
    sum = BlockSum(sum, shared);
    if (threadIdx.x == 0) d_weight[e] += sum;
  }
}

}  // namespace

template <typename T>
cudaError_t Convolution(cudaStream_t stream, const ConvolutionShape& shape, const T* x,
                        const T* weight, const T* bias, T* y) {
  const WindowShape& w = shape.window;
  const int64_t n = w.samples * w.places_height * w.places_width * shape.out;
  return Launch(ConvolutionKernel<T>, ElementLaunch(n), 0, stream, shape, n, x, weight, bias, y);
}

template <typename T>
cudaError_t ConvolutionInputGradient(cudaStream_t stream, const ConvolutionShape& shape,
                                     const T* dy, const T* weight, T* dx) {
  const WindowShape& w = shape.window;
  const int64_t n = w.samples * w.height * w.width * w.channels;
  return Launch(ConvolutionInputGradientKernel<T>, ElementLaunch(n), 0, stream, shape, n, dy,
                weight, dx);
}

template <typename T>
cudaError_t ConvolutionWeightGradient(cudaStream_t stream, const ConvolutionShape& shape,
                                      const T* dy, const T* x, float* d_weight) {
  const WindowShape& w = shape.window;
  const int64_t n = shape.out * w.size_height * w.size_width * (w.channels / shape.groups);
  const int64_t places = w.samples * w.places_height * w.places_width;
  if (places == 0) return cudaSuccess;
  return Launch(ConvolutionWeightGradientKernel<T>, RowLaunch(n, places, 8), 0, stream, shape, n,
                dy, x, d_weight);
}

#define STAGECOACH_INSTANTIATE(T)                                                                 \
  template cudaError_t Convolution(cudaStream_t, const ConvolutionShape&, const T*, const T*,     \
                                   const T*, T*);                                                 \
  template cudaError_t ConvolutionInputGradient(cudaStream_t, const ConvolutionShape&, const T*,  \
                                                const T*, T*);                                    \
  template cudaError_t ConvolutionWeightGradient(cudaStream_t, const ConvolutionShape&, const T*, \
                                                 const T*, float*)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
