#include "stage/backends/cuda/kernels/pointwise/scale.h"
#include "stage/backends/cuda/maps.cuh"

namespace stagecoach::cuda {
namespace {

struct ScaleOf {
  float factor;
  STAGECOACH_HOST_DEVICE void operator()(const float* x, float* y) const { y[0] = factor * x[0]; }
};

}  // namespace

template <typename T>
cudaError_t Scale(cudaStream_t stream, const T* x, T* y, int64_t n, float factor) {
  return Map(stream, MapArrays<T, 1, 1>{{x}, {y}}, n, ScaleOf{factor});
}

template cudaError_t Scale(cudaStream_t, const float*, float*, int64_t, float);
template cudaError_t Scale(cudaStream_t, const Bf16*, Bf16*, int64_t, float);

}  // namespace stagecoach::cuda
