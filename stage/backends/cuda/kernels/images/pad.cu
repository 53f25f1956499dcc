#include "stage/backends/cuda/kernels/images/pad.h"
#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {
namespace {

template <typename T>
__global__ void PadKernel(PadShape s, int64_t elements, const T* x, T* y) {
  for (int64_t e = GlobalThread(); e < elements; e += GlobalThreads()) {
    const int64_t channel = e % s.channels, pixel = e / s.channels;
    const int64_t column = pixel % s.to_width - s.left, row = pixel / s.to_width;
    const int64_t line = row % s.to_height - s.top, sample = row / s.to_height;
    const bool inside = 0 <= line && line < s.height && 0 <= column && column < s.width;
    y[e] = inside ? x[((sample * s.height + line) * s.width + column) * s.channels + channel]
                  : FromFloat<T>(0.0f);
  }
}

}  // namespace

template <typename T>
cudaError_t PadImages(cudaStream_t stream, PadShape shape, const T* x, T* y) {
  const int64_t elements = shape.samples * shape.to_height * shape.to_width * shape.channels;
  return Launch(PadKernel<T>, ElementLaunch(elements), 0, stream, shape, elements, x, y);
}

template cudaError_t PadImages(cudaStream_t, PadShape, const float*, float*);
template cudaError_t PadImages(cudaStream_t, PadShape, const Bf16*, Bf16*);

}  // namespace stagecoach::cuda
