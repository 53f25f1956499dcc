// A block a head of a row, as rms_norm has a block a row; heads of values are copied.
#include "stage/backends/cuda/column_sums.cuh"
#include "stage/backends/cuda/kernels/attention/head_norm.h"

namespace stagecoach::cuda {
namespace {

// What a block works on.
struct Head {
  int64_t start;      // of its elements
  int64_t statistic;  // its place in rstd; -1: a head of values
  bool query;
};
__device__ __forceinline__ int64_t HeadsOf(const HeadNormShape& s) {
  return s.queries + 2 * s.keys;
}
__device__ __forceinline__ Head HeadOf(const HeadNormShape& s, int64_t unit) {
  const int64_t row = unit / HeadsOf(s), head = unit % HeadsOf(s), normed = s.queries + s.keys;
  return {unit * s.head_width, head < normed ? row * normed + head : -1, head < s.queries};
}

template <typename T>
__device__ __forceinline__ void CopyHead(const HeadNormShape& s, const T* from, T* to) {
  for (int64_t i = threadIdx.x; i < s.head_width; i += blockDim.x) to[i] = from[i];
}

template <typename T>
__global__ void HeadNormKernel(HeadNormShape s, bool wide, const T* x, const float* query,
                               const float* key, float epsilon, T* y, float* rstd) {
  constexpr int kCount = kPack<T>;
  __shared__ float shared[32];
  const int64_t start = static_cast<int64_t>(threadIdx.x) * kCount, width = s.head_width;
  const int64_t stride = static_cast<int64_t>(blockDim.x) * kCount;
  for (int64_t unit = blockIdx.x; unit < s.rows * HeadsOf(s); unit += gridDim.x) {
    const Head head = HeadOf(s, unit);
    if (head.statistic < 0) {
      CopyHead(s, x + head.start, y + head.start);
      continue;
    }
    const float* const weight = head.query ? query : key;
    float squares = 0.0f;
    for (int64_t i = start; i < width; i += stride) {
      const Floats<kCount> values = LoadFloats<kCount>(x + head.start, i, 0, width, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) squares += values.at[j] * values.at[j];
    }
    const float mean = BlockSum(squares, shared) / static_cast<float>(width);
    const float own = 1.0f / sqrtf(mean + epsilon);
    for (int64_t i = start; i < width; i += stride) {
      Floats<kCount> values = LoadFloats<kCount>(x + head.start, i, 0, width, wide);
      const Floats<kCount> w = LoadFloats<kCount>(weight, i, 0, width, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) values.at[j] = values.at[j] * own * w.at[j];
      StoreFloats(values, y + head.start, i, 0, width, wide);
    }
    if (threadIdx.x == 0) rstd[head.statistic] = own;
  }
}

template <typename T>
__global__ void HeadNormInputGradientKernel(HeadNormShape s, bool wide, const T* dy, const T* x,
                                            const float* query, const float* key, const float* rstd,
                                            T* dx) {
  constexpr int kCount = kPack<T>;
  __shared__ float shared[32];
  const int64_t start = static_cast<int64_t>(threadIdx.x) * kCount, width = s.head_width;
  const int64_t stride = static_cast<int64_t>(blockDim.x) * kCount;
  for (int64_t unit = blockIdx.x; unit < s.rows * HeadsOf(s); unit += gridDim.x) {
    const Head head = HeadOf(s, unit);
    if (head.statistic < 0) {
      CopyHead(s, dy + head.start, dx + head.start);
      continue;
    }
    const float* const weight = head.query ? query : key;
    const float own = rstd[head.statistic];
    float sum = 0.0f;
    for (int64_t i = start; i < width; i += stride) {
      const Floats<kCount> values = LoadFloats<kCount>(x + head.start, i, 0, width, wide);
      const Floats<kCount> d = LoadFloats<kCount>(dy + head.start, i, 0, width, wide);
      const Floats<kCount> w = LoadFloats<kCount>(weight, i, 0, width, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) sum += d.at[j] * w.at[j] * values.at[j];
    }
    const float mean = own * own * (BlockSum(sum, shared) / static_cast<float>(width));
    for (int64_t i = start; i < width; i += stride) {
      Floats<kCount> values = LoadFloats<kCount>(x + head.start, i, 0, width, wide);
      const Floats<kCount> d = LoadFloats<kCount>(dy + head.start, i, 0, width, wide);
      const Floats<kCount> w = LoadFloats<kCount>(weight, i, 0, width, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        values.at[j] = own * (d.at[j] * w.at[j] - values.at[j] * mean);
      }
      StoreFloats(values, dx + head.start, i, 0, width, wide);
    }
  }
}

// dy * x * rstd of the heads [first, first + heads) of each row.
template <typename T>
struct HeadTerm {
  HeadNormShape shape;
  const T *dy, *x;
  const float* rstd;
  int64_t first, heads;
  bool wide;
  __device__ __forceinline__ Floats<kPack<T>> operator()(int64_t at, int64_t column) const {
    const int64_t row = at / heads, head = first + at % heads, width = shape.head_width;
    const int64_t start = (row * HeadsOf(shape) + head) * width;
    Floats<kPack<T>> values = LoadFloats<kPack<T>>(dy + start, column, 0, width, wide);
    const Floats<kPack<T>> factors = LoadFloats<kPack<T>>(x + start, column, 0, width, wide);
    const float own = rstd[row * (shape.queries + shape.keys) + head];
#pragma unroll
    for (int j = 0; j < kPack<T>; ++j) values.at[j] *= factors.at[j] * own;
    return values;
  }
};

LaunchShape HeadLaunch(const HeadNormShape& s, int per_thread) {
  return RowLaunch(s.rows * (s.queries + 2 * s.keys), s.head_width, per_thread);
}

}  // namespace

template <typename T>
cudaError_t HeadNorm(cudaStream_t stream, HeadNormShape shape, const T* x, const float* query,
                     const float* key, float epsilon, T* y, float* rstd) {
  return Launch(HeadNormKernel<T>, HeadLaunch(shape, kPack<T>), 0, stream, shape,
                RowsAligned<T>(shape.head_width, x, y, query, key), x, query, key, epsilon, y,
                rstd);
}

template <typename T>
cudaError_t HeadNormInputGradient(cudaStream_t stream, HeadNormShape shape, const T* dy, const T* x,
                                  const float* query, const float* key, const float* rstd, T* dx) {
  return Launch(HeadNormInputGradientKernel<T>, HeadLaunch(shape, kPack<T>), 0, stream, shape,
                RowsAligned<T>(shape.head_width, dy, x, dx, query, key), dy, x, query, key, rstd,
                dx);
}

template <typename T>
cudaError_t HeadNormWeightGradient(cudaStream_t stream, HeadNormShape shape, const T* dy,
                                   const T* x, const float* rstd, float* d_query, float* d_key,
                                   float* scratch) {
  const bool wide = RowsAligned<T>(shape.head_width, dy, x);
  const HeadTerm<T> queries = {shape, dy, x, rstd, 0, shape.queries, wide};
  const HeadTerm<T> keys = {shape, dy, x, rstd, shape.queries, shape.keys, wide};
  const cudaError_t error =
      SumTerms<T>(stream, shape.rows * shape.queries, shape.head_width, queries, d_query, scratch);
  if (error != cudaSuccess) return error;
  return SumTerms<T>(stream, shape.rows * shape.keys, shape.head_width, keys, d_key, scratch);
}

#define STAGECOACH_INSTANTIATE(T)                                                                  \
  template cudaError_t HeadNorm(cudaStream_t, HeadNormShape, const T*, const float*, const float*, \
                                float, T*, float*);                                                \
  template cudaError_t HeadNormInputGradient(cudaStream_t, HeadNormShape, const T*, const T*,      \
                                             const float*, const float*, const float*, T*);        \
  template cudaError_t HeadNormWeightGradient(cudaStream_t, HeadNormShape, const T*, const T*,     \
                                              const float*, float*, float*, float*)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
