// Softmax cross-entropy, a block a row: one pass for the largest logit and the sum of exponentials,
// one that writes the gradient. Probabilities are nowhere but in d_logits.
// Rows may begin anywhere (a vocabulary of 50257), so packs are those of the whole matrix: the
// first and last of a row may belong to its neighbours too, which have their own blocks.
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/packs.cuh"

namespace stagecoach::cuda {
namespace {

// Sum of exponentials relative to the largest value so far. A NaN goes into the sum.
struct RunningSum {
  float largest = -INFINITY;
  float sum = 0.0f;

  // Element j counts iff begin <= j < end.
  template <int kCount>
  __device__ __forceinline__ void Take(const Floats<kCount>& values, int64_t begin, int64_t end) {
    float top = largest;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      if (j >= begin && j < end) top = fmaxf(top, values.at[j]);
    }
    if (top > largest) {
      sum *= expf(largest - top);
      largest = top;
    }
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float value = values.at[j];
      if (j >= begin && j < end && value != -INFINITY) sum += expf(value - largest);
    }
  }
};

template <typename T>
__global__ void __launch_bounds__(kMaxLogitThreads)
    CrossEntropyKernel(const T* logits, const int32_t* targets, int64_t rows, int64_t vocabulary,
                       bool wide, float scale, T* d_logits, double* losses) {
  constexpr int kCount = kPack<T>;
  __shared__ float shared[32];
  const int64_t stride = static_cast<int64_t>(blockDim.x) * kCount;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    // No restrict: d_logits may be logits.
    const int64_t begin = row * vocabulary, end = begin + vocabulary;
    const int64_t start = (begin / kCount + threadIdx.x) * kCount;
    const int64_t target = targets[row];
    if (target < 0 || target >= vocabulary) __trap();
    RunningSum running;
    for (int64_t i = start; i < end; i += stride) {
      running.Take(LoadFloats<kCount>(logits, i, begin, end, wide), begin - i, end - i);
    }
    const float at_target = ToFloat(logits[begin + target]);
    // After these barriers every thread has read what it needs of the row but its own elements.
    const float largest = BlockMax(running.largest, shared);
    const float total = BlockSum(
        running.sum == 0.0f ? 0.0f : running.sum * expf(running.largest - largest), shared);
    if (threadIdx.x == 0) {
      losses[row] = log(static_cast<double>(total)) +
                    (static_cast<double>(largest) - static_cast<double>(at_target));
    }
    if (d_logits == nullptr) continue;
    const float inverse = 1.0f / total;
    for (int64_t i = start; i < end; i += stride) {
      Floats<kCount> values = LoadFloats<kCount>(logits, i, begin, end, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const float p = expf(values.at[j] - largest) * inverse;
        values.at[j] = (p - (i + j == begin + target ? 1.0f : 0.0f)) * scale;
      }
      StoreFloats(values, d_logits, i, begin, end, wide);
    }
  }
}

}  // namespace

template <typename T>
cudaError_t CrossEntropy(cudaStream_t stream, const T* logits, const int32_t* targets, int64_t rows,
                         int64_t vocabulary, float scale, double* loss, T* d_logits,
                         double* scratch) {
  const cudaError_t error = Launch(
      CrossEntropyKernel<T>, RowLaunch(rows, vocabulary, kPack<T>, kMaxLogitThreads), 0, stream,
      logits, targets, rows, vocabulary, Aligned(logits, d_logits), scale, d_logits, scratch);
  if (error != cudaSuccess) return error;
  return OrderedTotal(stream, scratch, rows, loss);
}

template cudaError_t CrossEntropy(cudaStream_t, const float*, const int32_t*, int64_t, int64_t,
                                  float, double*, float*, double*);
template cudaError_t CrossEntropy(cudaStream_t, const Bf16*, const int32_t*, int64_t, int64_t,
                                  float, double*, Bf16*, double*);

}  // namespace stagecoach::cuda
