// A block a row, which it reads from memory once and then from its cache.
#include "stage/backends/cuda/kernels/rms_norm.h"

#include "stage/backends/cuda/column_sums.cuh"

namespace stagecoach::cuda {
namespace {

template <typename T>
__global__ void RmsNormKernel(RowsShape shape, bool wide, const T* x, const float* weight,
                              float epsilon, T* y, float* rstd) {
  constexpr int kCount = kPack<T>;
  __shared__ float shared[32];
  const float count = static_cast<float>(shape.width);
  const int64_t start = static_cast<int64_t>(threadIdx.x) * kCount, width = shape.width;
  const int64_t stride = static_cast<int64_t>(blockDim.x) * kCount;
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const T* x_row = x + row * width;
    float squares = 0.0f;
    for (int64_t i = start; i < width; i += stride) {
      const Floats<kCount> values = LoadFloats<kCount>(x_row, i, 0, width, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) squares += values.at[j] * values.at[j];
    }
    const float row_rstd = 1.0f / sqrtf(BlockSum(squares, shared) / count + epsilon);
    for (int64_t i = start; i < width; i += stride) {
      Floats<kCount> values = LoadFloats<kCount>(x_row, i, 0, width, wide);
      const Floats<kCount> w = LoadFloats<kCount>(weight, i, 0, width, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) values.at[j] = values.at[j] * row_rstd * w.at[j];
      StoreFloats(values, y + row * width, i, 0, width, wide);
    }
    if (threadIdx.x == 0) rstd[row] = row_rstd;
  }
}

template <typename T>
__global__ void RmsNormInputGradientKernel(RowsShape shape, bool wide, const T* dy, const T* x,
                                           const float* weight, const float* rstd,
                                           const T* residual, T* dx) {
  constexpr int kCount = kPack<T>;
  __shared__ float shared[32];
  const float count = static_cast<float>(shape.width);
  const int64_t start = static_cast<int64_t>(threadIdx.x) * kCount, width = shape.width;
  const int64_t stride = static_cast<int64_t>(blockDim.x) * kCount;
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const T* x_row = x + row * width;
    const T* dy_row = dy + row * width;
    const float row_rstd = rstd[row];
    float sum = 0.0f;
    for (int64_t i = start; i < width; i += stride) {
      const Floats<kCount> values = LoadFloats<kCount>(x_row, i, 0, width, wide);
      const Floats<kCount> d = LoadFloats<kCount>(dy_row, i, 0, width, wide);
      const Floats<kCount> w = LoadFloats<kCount>(weight, i, 0, width, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) sum += d.at[j] * w.at[j] * values.at[j];
    }
    const float mean = row_rstd * row_rstd * (BlockSum(sum, shared) / count);
    for (int64_t i = start; i < width; i += stride) {
      Floats<kCount> values = LoadFloats<kCount>(x_row, i, 0, width, wide);
      const Floats<kCount> d = LoadFloats<kCount>(dy_row, i, 0, width, wide);
      const Floats<kCount> w = LoadFloats<kCount>(weight, i, 0, width, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        values.at[j] = row_rstd * (d.at[j] * w.at[j] - values.at[j] * mean);
      }
      if (residual != nullptr) {
        const Floats<kCount> addend = LoadFloats<kCount>(residual + row * width, i, 0, width, wide);
#pragma unroll
        for (int j = 0; j < kCount; ++j) values.at[j] += addend.at[j];
      }
      StoreFloats(values, dx + row * width, i, 0, width, wide);
    }
  }
}

// dy * x * rstd.
template <typename T>
struct WeightTerm {
  const T *dy, *x;
  const float* rstd;
  int64_t width;
  bool wide;
  __device__ __forceinline__ Floats<kPack<T>> operator()(int64_t row, int64_t column) const {
    Floats<kPack<T>> values = LoadFloats<kPack<T>>(dy + row * width, column, 0, width, wide);
    const Floats<kPack<T>> at = LoadFloats<kPack<T>>(x + row * width, column, 0, width, wide);
    const float row_rstd = rstd[row];
#pragma unroll
    for (int j = 0; j < kPack<T>; ++j) values.at[j] *= at.at[j] * row_rstd;
    return values;
  }
};

}  // namespace

template <typename T>
cudaError_t RmsNorm(cudaStream_t stream, RowsShape shape, const T* x, const float* weight,
                    float epsilon, T* y, float* rstd) {
  return Launch(RmsNormKernel<T>, RowLaunch(shape.rows, shape.width, kPack<T>), 0, stream, shape,
                RowsAligned<T>(shape.width, x, y, weight), x, weight, epsilon, y, rstd);
}

template <typename T>
cudaError_t RmsNormInputGradient(cudaStream_t stream, RowsShape shape, const T* dy, const T* x,
                                 const float* weight, const float* rstd, const T* residual, T* dx) {
  return Launch(RmsNormInputGradientKernel<T>, RowLaunch(shape.rows, shape.width, kPack<T>), 0,
                stream, shape, RowsAligned<T>(shape.width, dy, x, dx, weight, residual), dy, x,
                weight, rstd, residual, dx);
}

template <typename T>
cudaError_t RmsNormWeightGradient(cudaStream_t stream, RowsShape shape, const T* dy, const T* x,
                                  const float* rstd, float* d_weight, float* scratch) {
  const WeightTerm<T> term = {dy, x, rstd, shape.width, RowsAligned<T>(shape.width, dy, x)};
  return SumTerms<T>(stream, shape.rows, shape.width, term, d_weight, scratch);
}

#define STAGECOACH_INSTANTIATE(T)                                                                  \
  template cudaError_t RmsNorm(cudaStream_t, RowsShape, const T*, const float*, float, T*,         \
                               float*);                                                            \
  template cudaError_t RmsNormInputGradient(cudaStream_t, RowsShape, const T*, const T*,           \
                                            const float*, const float*, const T*, T*);             \
  template cudaError_t RmsNormWeightGradient(cudaStream_t, RowsShape, const T*, const T*,          \
                                             const float*, float*, float*)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
