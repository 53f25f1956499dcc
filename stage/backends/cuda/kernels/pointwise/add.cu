#include "stage/backends/cuda/kernels/pointwise/add.h"
#include "stage/backends/cuda/maps.cuh"

namespace stagecoach::cuda {
namespace {

struct SumOf {
  STAGECOACH_HOST_DEVICE void operator()(const float* x, float* y) const { y[0] = x[0] + x[1]; }
};

}  // namespace

template <typename T>
cudaError_t Add(cudaStream_t stream, const T* a, const T* b, T* y, int64_t n) {
  return Map(stream, MapArrays<T, 2, 1>{{a, b}, {y}}, n, SumOf{});
}

#define STAGECOACH_INSTANTIATE(T) \
  template cudaError_t Add(cudaStream_t, const T*, const T*, T*, int64_t)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
