// A block a chunk of elements, whose share of the sum is its own; the shares are added in a fixed
// order.
#include "stage/backends/cuda/kernels/losses/mean_squared_error.h"
#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {
namespace {

constexpr int64_t kChunk = 4096;

template <typename T>
__global__ void SquaredErrorKernel(int64_t n, int64_t numbers, int64_t chunks, const T* prediction,
                                   const float* target, const float* weights, const float* scale,
                                   T* gradient, double* shares) {
  __shared__ double shared[32];
  const float factor = gradient == nullptr ? 0.0f : 2.0f * *scale;
  for (int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    const int64_t first = chunk * kChunk, end = first + kChunk < n ? first + kChunk : n;
    double sum = 0.0, terms = 0.0;
    for (int64_t i = first + threadIdx.x; i < end; i += blockDim.x) {
      const float weight = weights == nullptr ? 1.0f : weights[i / numbers];
      const float difference = weight == 0.0f ? 0.0f : ToFloat(prediction[i]) - target[i];
      sum += weight * (static_cast<double>(difference) * difference);
      terms += weight;
      if (gradient != nullptr) gradient[i] = FromFloat<T>(difference * (factor * weight));
    }
    sum = BlockSum(sum, shared);
    // The same for all threads: where there are no weights, nothing is to be summed.
    terms = weights == nullptr ? static_cast<double>(end - first) : BlockSum(terms, shared);
    if (threadIdx.x != 0) continue;
    shares[chunk] = sum;
    shares[chunks + chunk] = terms;
  }
}

}  // namespace

int64_t SquaredErrorBlocks(int64_t n) { return (n + kChunk - 1) / kChunk; }

template <typename T>
cudaError_t SquaredError(cudaStream_t stream, int64_t n, int64_t numbers, const T* prediction,
                         const float* target, const float* weights, const float* scale, T* gradient,
                         double* sums, double* scratch) {
  const int64_t chunks = SquaredErrorBlocks(n);
  const uint32_t grid = static_cast<uint32_t>(chunks < kMaxGrid ? chunks : kMaxGrid);
  cudaError_t error =
      Launch(SquaredErrorKernel<T>, LaunchShape{grid, kElementThreads}, 0, stream, n, numbers,
             chunks, prediction, target, weights, scale, gradient, scratch);
  for (int i = 0; i < 2 && error == cudaSuccess; ++i) {
    error = OrderedTotal(stream, scratch + i * chunks, chunks, sums + i);
  }
  return error;
}

template cudaError_t SquaredError(cudaStream_t, int64_t, int64_t, const float*, const float*,
                                  const float*, const float*, float*, double*, double*);
template cudaError_t SquaredError(cudaStream_t, int64_t, int64_t, const Bf16*, const float*,
                                  const float*, const float*, Bf16*, double*, double*);

}  // namespace stagecoach::cuda
