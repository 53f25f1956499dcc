// Softmax cross-entropy, a block a row: one pass for the largest logit and the sum of exponentials,
// one that writes the gradient. Probabilities are nowhere but in d_logits.
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {
namespace {

// Sum of exponentials relative to the largest value so far. A NaN goes into the sum.
struct RunningSum {
  float largest = -INFINITY;
  float sum = 0.0f;

  __device__ __forceinline__ void Take(float value) {
    if (value > largest) {
      sum = sum * expf(largest - value) + 1.0f;
      largest = value;
    } else if (value != -INFINITY) {
      sum += expf(value - largest);
    }
  }
};

__global__ void CrossEntropyKernel(const float* logits, const int32_t* targets, int64_t rows,
                                   int64_t vocabulary, float scale, float* d_logits,
                                   double* losses) {
  __shared__ float shared[32];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    // No restrict: d_logits may be logits.
    const float* in = logits + row * vocabulary;
    const int64_t target = targets[row];
    if (target < 0 || target >= vocabulary) __trap();
    RunningSum running;
    for (int64_t i = threadIdx.x; i < vocabulary; i += blockDim.x) running.Take(in[i]);
    const float at_target = in[target];
    // After these barriers every thread has read what it needs of the row but its own elements.
    const float largest = BlockMax(running.largest, shared);
    const float total = BlockSum(
        running.sum == 0.0f ? 0.0f : running.sum * expf(running.largest - largest), shared);
    if (threadIdx.x == 0) {
      losses[row] = log(static_cast<double>(total)) +
                    (static_cast<double>(largest) - static_cast<double>(at_target));
    }
    if (d_logits == nullptr) continue;
    float* out = d_logits + row * vocabulary;
    const float inverse = 1.0f / total;
    for (int64_t i = threadIdx.x; i < vocabulary; i += blockDim.x) {
      const float p = expf(in[i] - largest) * inverse;
      out[i] = (p - (i == target ? 1.0f : 0.0f)) * scale;
    }
  }
}

}  // namespace

cudaError_t CrossEntropy(cudaStream_t stream, const float* logits, const int32_t* targets,
                         int64_t rows, int64_t vocabulary, float scale, double* loss,
                         float* d_logits, double* scratch) {
  const cudaError_t error = Launch(CrossEntropyKernel, RowLaunch(rows, vocabulary), 0, stream,
                                   logits, targets, rows, vocabulary, scale, d_logits, scratch);
  if (error != cudaSuccess) return error;
  return OrderedTotal(stream, scratch, rows, loss);
}

}  // namespace stagecoach::cuda
