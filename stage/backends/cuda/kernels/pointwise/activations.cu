#include "stage/backends/cuda/kernels/pointwise/activations.h"
#include "stage/backends/cuda/maps.cuh"

namespace stagecoach::cuda {
namespace {

struct GeluOf {
  STAGECOACH_HOST_DEVICE void operator()(const float* x, float* y) const { y[0] = GeluTanh(x[0]); }
};
struct GeluGradientOf {  // of dy, x
  STAGECOACH_HOST_DEVICE void operator()(const float* x, float* y) const {
    y[0] = x[0] * GeluTanhDerivative(x[1]);
  }
};
struct GeluErfMap {
  STAGECOACH_HOST_DEVICE void operator()(const float* x, float* y) const { y[0] = GeluErfOf(x[0]); }
};
struct GeluErfGradientOf {  // of dy, x
  STAGECOACH_HOST_DEVICE void operator()(const float* x, float* y) const {
    y[0] = x[0] * GeluErfDerivative(x[1]);
  }
};
struct SiluOf {
  STAGECOACH_HOST_DEVICE void operator()(const float* x, float* y) const {
    y[0] = x[0] * LogisticOf(x[0]).gate;
  }
};
struct SiluGradientOf {  // of dy, x
  STAGECOACH_HOST_DEVICE void operator()(const float* x, float* y) const {
    y[0] = x[0] * SiluSlope(x[1], LogisticOf(x[1]));
  }
};
struct ReluOf {
  STAGECOACH_HOST_DEVICE void operator()(const float* x, float* y) const {
    y[0] = x[0] < 0.0f ? 0.0f : x[0];  // a NaN stays one
  }
};
struct ReluGradientOf {  // of dy, y
  STAGECOACH_HOST_DEVICE void operator()(const float* x, float* y) const {
    y[0] = x[1] > 0.0f ? x[0] : 0.0f;
  }
};

}  // namespace

template <typename T>
cudaError_t Gelu(cudaStream_t stream, const T* x, T* y, int64_t n) {
  return Map(stream, MapArrays<T, 1, 1>{{x}, {y}}, n, GeluOf{});
}
template <typename T>
cudaError_t GeluGradient(cudaStream_t stream, const T* dy, const T* x, T* dx, int64_t n) {
  return Map(stream, MapArrays<T, 2, 1>{{dy, x}, {dx}}, n, GeluGradientOf{});
}
template <typename T>
cudaError_t GeluErf(cudaStream_t stream, const T* x, T* y, int64_t n) {
  return Map(stream, MapArrays<T, 1, 1>{{x}, {y}}, n, GeluErfMap{});
}
template <typename T>
cudaError_t GeluErfGradient(cudaStream_t stream, const T* dy, const T* x, T* dx, int64_t n) {
  return Map(stream, MapArrays<T, 2, 1>{{dy, x}, {dx}}, n, GeluErfGradientOf{});
}
template <typename T>
cudaError_t Silu(cudaStream_t stream, const T* x, T* y, int64_t n) {
  return Map(stream, MapArrays<T, 1, 1>{{x}, {y}}, n, SiluOf{});
}
template <typename T>
cudaError_t SiluGradient(cudaStream_t stream, const T* dy, const T* x, T* dx, int64_t n) {
  return Map(stream, MapArrays<T, 2, 1>{{dy, x}, {dx}}, n, SiluGradientOf{});
}
template <typename T>
cudaError_t Relu(cudaStream_t stream, const T* x, T* y, int64_t n) {
  return Map(stream, MapArrays<T, 1, 1>{{x}, {y}}, n, ReluOf{});
}
template <typename T>
cudaError_t ReluGradient(cudaStream_t stream, const T* dy, const T* y, T* dx, int64_t n) {
  return Map(stream, MapArrays<T, 2, 1>{{dy, y}, {dx}}, n, ReluGradientOf{});
}

#define STAGECOACH_INSTANTIATE(T)                                                      \
  template cudaError_t Gelu(cudaStream_t, const T*, T*, int64_t);                      \
  template cudaError_t GeluGradient(cudaStream_t, const T*, const T*, T*, int64_t);    \
  template cudaError_t GeluErf(cudaStream_t, const T*, T*, int64_t);                   \
  template cudaError_t GeluErfGradient(cudaStream_t, const T*, const T*, T*, int64_t); \
  template cudaError_t Silu(cudaStream_t, const T*, T*, int64_t);                      \
  template cudaError_t SiluGradient(cudaStream_t, const T*, const T*, T*, int64_t);    \
  template cudaError_t Relu(cudaStream_t, const T*, T*, int64_t);                      \
  template cudaError_t ReluGradient(cudaStream_t, const T*, const T*, T*, int64_t)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
