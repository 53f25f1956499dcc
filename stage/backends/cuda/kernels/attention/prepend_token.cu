#include "stage/backends/cuda/kernels/attention/prepend_token.h"
#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {
namespace {

template <typename T>
__global__ void PrependTokenKernel(PrependTokenShape s, int64_t elements, const T* x,
                                   const T* token, const T* position, T* y) {
  for (int64_t e = GlobalThread(); e < elements; e += GlobalThreads()) {
    const int64_t column = e % s.width, row = e / s.width;
    const int64_t place = row % s.rows, sample = row / s.rows;
    const T value =
        place == 0 ? token[column] : x[(sample * (s.rows - 1) + place - 1) * s.width + column];
    y[e] = FromFloat<T>(ToFloat(value) + ToFloat(position[place * s.width + column]));
  }
}

// A thread adds up one element of the positions over the samples in order, and one of the token's
// with it.
template <typename T>
__global__ void PrependTokenBackwardKernel(PrependTokenShape s, const T* dy, float* d_token,
                                           float* d_position) {
  const int64_t elements = s.rows * s.width;
  for (int64_t e = GlobalThread(); e < elements; e += GlobalThreads()) {
    const bool is_token = e < s.width;
    float position = d_position[e], token = is_token ? d_token[e] : 0.0f;
    for (int64_t sample = 0; sample < s.samples; ++sample) {
      const float gradient = ToFloat(dy[sample * elements + e]);
      position += gradient;
      token += gradient;
    }
    d_position[e] = position;
    if (is_token) d_token[e] = token;
  }
}

}  // namespace

template <typename T>
cudaError_t PrependToken(cudaStream_t stream, PrependTokenShape shape, const T* x, const T* token,
                         const T* position, T* y) {
  const int64_t elements = shape.samples * shape.rows * shape.width;
  return Launch(PrependTokenKernel<T>, ElementLaunch(elements), 0, stream, shape, elements, x,
                token, position, y);
}

template <typename T>
cudaError_t PrependTokenBackward(cudaStream_t stream, PrependTokenShape shape, const T* dy,
                                 float* d_token, float* d_position) {
  return Launch(PrependTokenBackwardKernel<T>, ElementLaunch(shape.rows * shape.width), 0, stream,
                shape, dy, d_token, d_position);
}

#define STAGECOACH_INSTANTIATE(T)                                                                  \
  template cudaError_t PrependToken(cudaStream_t, PrependTokenShape, const T*, const T*, const T*, \
                                    T*);                                                           \
  template cudaError_t PrependTokenBackward(cudaStream_t, PrependTokenShape, const T*, float*,     \
                                            float*)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
