// A thread a pair.
#include "stage/backends/cuda/kernels/attention/add_sinusoids.h"
#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {
namespace {

template <typename T>
__global__ void AddSinusoidsKernel(const T* x, const float* sines, const float* cosines, T* y,
                                   int64_t pairs, int64_t table) {
  for (int64_t i = GlobalThread(); i < pairs; i += GlobalThreads()) {
    y[2 * i] = FromFloat<T>(ToFloat(x[2 * i]) + sines[i % table]);
    y[2 * i + 1] = FromFloat<T>(ToFloat(x[2 * i + 1]) + cosines[i % table]);
  }
}

}  // namespace

template <typename T>
cudaError_t AddSinusoids(cudaStream_t stream, const T* x, const float* sines, const float* cosines,
                         T* y, int64_t pairs, int64_t table) {
  return Launch(AddSinusoidsKernel<T>, ElementLaunch(pairs), 0, stream, x, sines, cosines, y, pairs,
                table);
}

template cudaError_t AddSinusoids(cudaStream_t, const float*, const float*, const float*, float*,
                                  int64_t, int64_t);
template cudaError_t AddSinusoids(cudaStream_t, const Bf16*, const float*, const float*, Bf16*,
                                  int64_t, int64_t);

}  // namespace stagecoach::cuda
