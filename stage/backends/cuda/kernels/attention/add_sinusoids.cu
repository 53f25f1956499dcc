// A thread a pair.
#include "stage/backends/cuda/kernels/attention/add_sinusoids.h"
#include "stage/backends/cuda/kernels/attention/row_positions.cuh"
#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {
namespace {

template <typename T>
__global__ void AddSinusoidsKernel(SinusoidsShape s, const T* x, const int32_t* ids,
                                   const float* sines, const float* cosines, T* y) {
  for (int64_t i = GlobalThread(); i < s.rows * s.pairs; i += GlobalThreads()) {
    const int64_t angle = PositionOf(i / s.pairs, ids, s.positions) * s.pairs + i % s.pairs;
    y[2 * i] = FromFloat<T>(ToFloat(x[2 * i]) + sines[angle]);
    y[2 * i + 1] = FromFloat<T>(ToFloat(x[2 * i + 1]) + cosines[angle]);
  }
}

}  // namespace

template <typename T>
cudaError_t AddSinusoids(cudaStream_t stream, SinusoidsShape shape, const T* x, const int32_t* ids,
                         const float* sines, const float* cosines, T* y) {
  return Launch(AddSinusoidsKernel<T>, ElementLaunch(shape.rows * shape.pairs), 0, stream, shape, x,
                ids, sines, cosines, y);
}

template cudaError_t AddSinusoids(cudaStream_t, SinusoidsShape, const float*, const int32_t*,
                                  const float*, const float*, float*);
template cudaError_t AddSinusoids(cudaStream_t, SinusoidsShape, const Bf16*, const int32_t*,
                                  const float*, const float*, Bf16*);

}  // namespace stagecoach::cuda
