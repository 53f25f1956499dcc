// A block a row. What rows add up to is kept by row, and added in a fixed order. The loss alone, as
// language models have it, is one pass over the logits in packs and one that writes the gradient;
// probabilities are nowhere but in d_logits. With measures or smoothing there is another pass,
// element by element.
//
// Rows may begin anywhere (a vocabulary of 50257 in an evaluation, whose logits are dense), so
// packs are those of the whole matrix: the first and last of a row may belong to its neighbours
// too, which have their own blocks.
#include "stage/backends/cuda/kernels/losses/cross_entropy.h"
#include "stage/backends/cuda/launch.cuh"
#include "stage/backends/cuda/packs.cuh"

namespace stagecoach::cuda {
namespace {

// What a block finds out about its row; all its threads get it.
struct RowSums {
  float largest, total;
  double mean;  // of the logits
  int rank;     // classes that come before the target
};

template <typename T>
__device__ __forceinline__ float LargestOfRow(const T* row, int64_t classes, float* shared) {
  float largest = -INFINITY;
  for (int64_t j = threadIdx.x; j < classes; j += blockDim.x) {
    largest = fmaxf(largest, ToFloat(row[j]));
  }
  return BlockMax(largest, shared);
}

template <typename T>
__device__ __forceinline__ RowSums SumsOfRow(const T* row, int64_t classes, int64_t target,
                                             float* shared, double* wide) {
  const float largest = LargestOfRow(row, classes, shared);
  const float own = ToFloat(row[target]);
  float total = 0.0f, before = 0.0f;
  double sum = 0.0;
  for (int64_t j = threadIdx.x; j < classes; j += blockDim.x) {
    const float value = ToFloat(row[j]);
    total += expf(value - largest);
    sum += value;
    // As in operations/losses/cross_entropy.h: what is not a number comes before the target.
    const bool behind = j < target ? value < own : value <= own;
    before += j == target || behind ? 0.0f : 1.0f;
  }
  RowSums sums;
  sums.largest = largest;
  sums.total = BlockSum(total, shared);
  sums.rank = static_cast<int>(BlockSum(before, shared));
  sums.mean = BlockSum(sum, wide) / static_cast<double>(classes);
  return sums;
}

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

// Of a row beside what it adds to the sums: which class is guessed.
constexpr int32_t kNoGuess = -1;   // a logit is not a number
constexpr int32_t kNoTarget = -2;  // its target does not count

// The lowest class with the largest logit. Classes that are counted are few, so a float tells them
// apart.
template <typename T>
__device__ __forceinline__ int32_t GuessOfRow(const T* row, int64_t classes, float* shared) {
  const float largest = LargestOfRow(row, classes, shared);
  float first = -static_cast<float>(classes), strange = 0.0f;
  for (int64_t j = threadIdx.x; j < classes; j += blockDim.x) {
    const float value = ToFloat(row[j]);
    if (value != value) strange = 1.0f;
    if (value == largest) first = fmaxf(first, -static_cast<float>(j));
  }
  first = BlockMax(first, shared);
  strange = BlockMax(strange, shared);
  return strange > 0.0f ? kNoGuess : static_cast<int32_t>(-first);
}

// A block a class. Whole numbers, so their order makes no difference. counts: [classes,
// kCountsOfAClass].
__global__ void CountClassesKernel(int64_t rows, int64_t classes, const int32_t* targets,
                                   const int32_t* guesses, double* counts) {
  __shared__ double shared[32];
  for (int64_t c = blockIdx.x; c < classes; c += gridDim.x) {
    double right = 0.0, wanted = 0.0, guessed = 0.0;
    for (int64_t r = threadIdx.x; r < rows; r += blockDim.x) {
      const bool is_target = guesses[r] != kNoTarget && targets[r] == c;
      const bool is_guess = guesses[r] == c;
      right += is_target && is_guess ? 1.0 : 0.0;
      wanted += is_target ? 1.0 : 0.0;
      guessed += is_guess ? 1.0 : 0.0;
    }
    right = BlockSum(right, shared);
    wanted = BlockSum(wanted, shared);
    guessed = BlockSum(guessed, shared);
    if (threadIdx.x == 0) {
      counts[c * kCountsOfAClass] = right;
      counts[c * kCountsOfAClass + 1] = wanted;
      counts[c * kCountsOfAClass + 2] = guessed;
    }
  }
}

// Every thread's share of the row. d_row may be null.
template <typename T>
__device__ __forceinline__ void FillRow(T* d_row, int64_t classes, float value) {
  if (d_row == nullptr) return;
  for (int64_t j = threadIdx.x; j < classes; j += blockDim.x) d_row[j] = FromFloat<T>(value);
}

// What a row gives that has no class: is it no term, or a fault of the data?
__device__ __forceinline__ void NoteNoClass(const LossRows& s, int64_t r, bool ignored,
                                            float weight, double* table) {
  for (int i = 0; i < s.sums; ++i) table[i * s.rows + r] = 0.0;
  if (ignored) return;
  table[r] = NAN;
  table[s.rows + r] = weight;
}

__device__ __forceinline__ float WeightOf(const float* weights, int64_t r) {
  return weights == nullptr ? 1.0f : weights[r];
}

template <typename T>
__global__ void __launch_bounds__(kMaxLogitThreads)
    LossAloneKernel(LossRows s, const T* logits, const int32_t* targets, bool wide,
                    const float* weights, const float* scale, T* d_logits, double* table) {
  constexpr int kCount = kPack<T>;
  __shared__ float shared[32];
  const int64_t stride = static_cast<int64_t>(blockDim.x) * kCount;
  for (int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    // No restrict: d_logits may be logits.
    const int64_t begin = row * s.stride, end = begin + s.classes;
    const int64_t start = (begin / kCount + threadIdx.x) * kCount;
    const int64_t target = targets[row];
    const float weight = WeightOf(weights, row);
    const bool ignored = target == s.ignored || weight == 0.0f;
    const bool known = target >= 0 && target < s.classes;
    if (ignored || !known) {
      FillRow(d_logits == nullptr ? nullptr : d_logits + begin, s.classes, ignored ? 0.0f : NAN);
      if (threadIdx.x == 0) NoteNoClass(s, row, ignored, weight, table);
      continue;
    }
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
      const double loss = log(static_cast<double>(total)) +
                          (static_cast<double>(largest) - static_cast<double>(at_target));
      table[row] = weight * loss;
      table[s.rows + row] = weight;
    }
    if (d_logits == nullptr) continue;
    const float inverse = 1.0f / total, factor = *scale * weight;
    for (int64_t i = start; i < end; i += stride) {
      Floats<kCount> values = LoadFloats<kCount>(logits, i, begin, end, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const float p = expf(values.at[j] - largest) * inverse;
        values.at[j] = (p - (i + j == begin + target ? 1.0f : 0.0f)) * factor;
      }
      StoreFloats(values, d_logits, i, begin, end, wide);
    }
  }
}

template <typename T>
__global__ void MeasuredLossKernel(LossRows s, const T* logits, const int32_t* targets,
                                   const float* weights, const float* scale, T* d_logits,
                                   double* table, int32_t* guesses) {
  __shared__ float shared[32];
  __shared__ double wide[32];
  for (int64_t r = blockIdx.x; r < s.rows; r += gridDim.x) {
    const int64_t target = targets[r];
    const float weight = WeightOf(weights, r);
    const bool ignored = target == s.ignored || weight == 0.0f;
    const bool known = target >= 0 && target < s.classes;
    T* const d_row = d_logits == nullptr ? nullptr : d_logits + r * s.stride;
    const T* const row = logits + r * s.stride;
    if (guesses != nullptr) {  // before the row may be overwritten; of every weight, 0 too
      int32_t guess = kNoTarget;
      if (known && target != s.ignored) {
        guess = GuessOfRow(row, s.classes, shared);
      }
      if (threadIdx.x == 0) guesses[r] = guess;
    }
    if (ignored || !known) {
      FillRow(d_row, s.classes, ignored ? 0.0f : NAN);
      if (threadIdx.x == 0) NoteNoClass(s, r, ignored, weight, table);
      continue;
    }
    const float own = ToFloat(row[target]);  // before the row may be overwritten
    const RowSums sums = SumsOfRow(row, s.classes, target, shared, wide);
    if (threadIdx.x == 0) {
      const double loss = log(static_cast<double>(sums.total)) + static_cast<double>(sums.largest) -
                          (1.0 - s.smoothing) * own -
                          (s.smoothing > 0.0 ? s.smoothing * sums.mean : 0.0);
      table[r] = weight * loss;
      table[s.rows + r] = weight;
      int64_t next = 2;
      if (s.accuracy) table[next++ * s.rows + r] = sums.rank == 0 ? weight : 0.0;
      if (s.top > 0) table[next * s.rows + r] = sums.rank < s.top ? weight : 0.0;
    }
    if (d_row == nullptr) continue;
    const float inverse = 1.0f / sums.total, factor = *scale * weight;
    const float share = static_cast<float>(s.smoothing / static_cast<double>(s.classes));
    for (int64_t j = threadIdx.x; j < s.classes; j += blockDim.x) {
      const float p = expf(ToFloat(row[j]) - sums.largest) * inverse;
      const float q = share + (j == target ? static_cast<float>(1.0 - s.smoothing) : 0.0f);
      d_row[j] = FromFloat<T>((p - q) * factor);
    }
  }
}

}  // namespace

template <typename T>
cudaError_t CrossEntropyLoss(cudaStream_t stream, const LossRows& shape, const T* logits,
                             const int32_t* targets, const float* weights, const float* scale,
                             T* d_logits, double* sums, double* scratch) {
  const bool alone = shape.sums == 2 && shape.smoothing == 0.0 && !shape.counts_classes;
  auto* const guesses = shape.counts_classes
                            ? reinterpret_cast<int32_t*>(scratch + shape.rows * shape.sums)
                            : nullptr;
  cudaError_t error =
      alone
          ? Launch(LossAloneKernel<T>,
                   RowLaunch(shape.rows, shape.classes, kPack<T>, kMaxLogitThreads), 0, stream,
                   shape, logits, targets, Aligned(logits, d_logits), weights, scale, d_logits,
                   scratch)
          : Launch(MeasuredLossKernel<T>, RowLaunch(shape.rows, shape.classes, 1, kMaxLogitThreads),
                   0, stream, shape, logits, targets, weights, scale, d_logits, scratch, guesses);
  for (int i = 0; i < shape.sums && error == cudaSuccess; ++i) {
    error = OrderedTotal(stream, scratch + i * shape.rows, shape.rows, sums + i);
  }
  if (guesses != nullptr && error == cudaSuccess) {
    error = Launch(CountClassesKernel,
                   LaunchShape{static_cast<uint32_t>(shape.classes), kElementThreads}, 0, stream,
                   shape.rows, shape.classes, targets, guesses, sums + shape.sums);
  }
  return error;
}

template cudaError_t CrossEntropyLoss(cudaStream_t, const LossRows&, const float*, const int32_t*,
                                      const float*, const float*, float*, double*, double*);
template cudaError_t CrossEntropyLoss(cudaStream_t, const LossRows&, const Bf16*, const int32_t*,
                                      const float*, const float*, Bf16*, double*, double*);

}  // namespace stagecoach::cuda
