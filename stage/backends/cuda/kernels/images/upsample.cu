#include "stage/backends/cuda/kernels/images/upsample.h"
#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {
namespace {

template <typename T>
__global__ void UpsampleKernel(UpsampleShape s, int64_t elements, const T* x, T* y) {
  const int64_t line = s.width * s.times_width;
  for (int64_t e = GlobalThread(); e < elements; e += GlobalThreads()) {
    const int64_t channel = e % s.channels, pixel = e / s.channels;
    // Rows of all samples lie one after the other, small and large.
    const int64_t row = pixel / line / s.times_height, column = pixel % line / s.times_width;
    y[e] = x[(row * s.width + column) * s.channels + channel];
  }
}

template <typename T>
__global__ void UpsampleGradientKernel(UpsampleShape s, int64_t elements, const T* dy, T* dx) {
  const int64_t line = s.width * s.times_width;
  for (int64_t e = GlobalThread(); e < elements; e += GlobalThreads()) {
    const int64_t channel = e % s.channels, pixel = e / s.channels;
    const int64_t row = pixel / s.width * s.times_height, column = pixel % s.width * s.times_width;
    float sum = 0.0f;
    for (int64_t u = 0; u < s.times_height; ++u) {
      for (int64_t v = 0; v < s.times_width; ++v) {
        sum += ToFloat(dy[((row + u) * line + column + v) * s.channels + channel]);
      }
    }
    dx[e] = FromFloat<T>(sum);
  }
}

int64_t SmallElements(const UpsampleShape& s) {
  return s.samples * s.height * s.width * s.channels;
}

}  // namespace

template <typename T>
cudaError_t Upsample(cudaStream_t stream, UpsampleShape shape, const T* x, T* y) {
  const int64_t elements = SmallElements(shape) * shape.times_height * shape.times_width;
  return Launch(UpsampleKernel<T>, ElementLaunch(elements), 0, stream, shape, elements, x, y);
}

template <typename T>
cudaError_t UpsampleGradient(cudaStream_t stream, UpsampleShape shape, const T* dy, T* dx) {
  const int64_t elements = SmallElements(shape);
  return Launch(UpsampleGradientKernel<T>, ElementLaunch(elements), 0, stream, shape, elements, dy,
                dx);
}

#define STAGECOACH_INSTANTIATE(T)                                           \
  template cudaError_t Upsample(cudaStream_t, UpsampleShape, const T*, T*); \
  template cudaError_t UpsampleGradient(cudaStream_t, UpsampleShape, const T*, T*)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
