#include "stage/backends/cuda/kernels/pointwise/clip.h"
#include "stage/backends/cuda/maps.cuh"

namespace stagecoach::cuda {
namespace {

struct ClipOf {
  float limit;
  STAGECOACH_HOST_DEVICE void operator()(const float* x, float* y) const {
    y[0] = x[0] > limit ? limit : x[0] < -limit ? -limit : x[0];  // a NaN stays one
  }
};
struct ClipGradientOf {  // of dy, x
  float limit;
  STAGECOACH_HOST_DEVICE void operator()(const float* x, float* y) const {
    y[0] = fabsf(x[1]) <= limit ? x[0] : 0.0f;
  }
};

}  // namespace

template <typename T>
cudaError_t Clip(cudaStream_t stream, const T* x, T* y, int64_t n, float limit) {
  return Map(stream, MapArrays<T, 1, 1>{{x}, {y}}, n, ClipOf{limit});
}
template <typename T>
cudaError_t ClipGradient(cudaStream_t stream, const T* dy, const T* x, T* dx, int64_t n,
                         float limit) {
  return Map(stream, MapArrays<T, 2, 1>{{dy, x}, {dx}}, n, ClipGradientOf{limit});
}

#define STAGECOACH_INSTANTIATE(T)                                        \
  template cudaError_t Clip(cudaStream_t, const T*, T*, int64_t, float); \
  template cudaError_t ClipGradient(cudaStream_t, const T*, const T*, T*, int64_t, float)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
