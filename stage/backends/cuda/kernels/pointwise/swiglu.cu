#include "stage/backends/cuda/kernels/pointwise/swiglu.h"
#include "stage/backends/cuda/maps.cuh"

namespace stagecoach::cuda {
namespace {

struct SwigluOf {  // of gate, up
  STAGECOACH_HOST_DEVICE void operator()(const float* x, float* y) const {
    y[0] = x[0] * LogisticOf(x[0]).gate * x[1];
  }
};
struct SwigluGradientOf {  // of dy, gate, up
  STAGECOACH_HOST_DEVICE void operator()(const float* x, float* y) const {
    const Logistic s = LogisticOf(x[1]);
    y[0] = x[0] * x[2] * SiluSlope(x[1], s);
    y[1] = x[0] * (x[1] * s.gate);
  }
};

}  // namespace

template <typename T>
cudaError_t Swiglu(cudaStream_t stream, const T* gate, const T* up, T* y, int64_t n) {
  return Map(stream, MapArrays<T, 2, 1>{{gate, up}, {y}}, n, SwigluOf{});
}
template <typename T>
cudaError_t SwigluGradient(cudaStream_t stream, const T* dy, const T* gate, const T* up, T* d_gate,
                           T* d_up, int64_t n) {
  return Map(stream, MapArrays<T, 3, 2>{{dy, gate, up}, {d_gate, d_up}}, n, SwigluGradientOf{});
}

#define STAGECOACH_INSTANTIATE(T)                                             \
  template cudaError_t Swiglu(cudaStream_t, const T*, const T*, T*, int64_t); \
  template cudaError_t SwigluGradient(cudaStream_t, const T*, const T*, const T*, T*, T*, int64_t)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
