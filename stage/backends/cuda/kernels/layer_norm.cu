// Layer norm: a block a row, which it reads from memory once and then from its cache. The mean is
// taken in two steps, so that a row far from zero loses nothing; the variance is of centred values.
#include "stage/backends/cuda/kernels/layer_norm.h"

#include "stage/backends/cuda/column_partials.cuh"
#include "stage/backends/cuda/packs.cuh"

namespace stagecoach::cuda {
namespace {

template <typename T>
__global__ void LayerNormKernel(LayerNormShape shape, bool wide, const T* x, const float* weight,
                                const float* bias, float epsilon, T* y, float* mean, float* rstd) {
  constexpr int kCount = kPack<T>;
  __shared__ float shared[64];
  const float count = static_cast<float>(shape.width);
  const int64_t start = static_cast<int64_t>(threadIdx.x) * kCount, width = shape.width;
  const int64_t stride = static_cast<int64_t>(blockDim.x) * kCount;
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const T* x_row = x + row * width;
    T* y_row = y + row * width;
    float sum = 0.0f;
    for (int64_t i = start; i < width; i += stride) {
      const Floats<kCount> values = LoadFloats<kCount>(x_row, i, 0, width, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) sum += values.at[j];
    }
    const float rough = BlockSum(sum, shared) / count;
    float rest = 0.0f, squares = 0.0f;
    for (int64_t i = start; i < width; i += stride) {
      const Floats<kCount> values = LoadFloats<kCount>(x_row, i, 0, width, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const float centred = i + j < width ? values.at[j] - rough : 0.0f;
        rest += centred;
        squares += centred * centred;
      }
    }
    const TwoSums sums = BlockSumTwo(rest, squares, shared);
    const float correction = sums.first / count;
    const float variance = sums.second / count - correction * correction;
    const float row_mean = rough + correction;
    const float row_rstd = 1.0f / sqrtf(fmaxf(variance, 0.0f) + epsilon);
    for (int64_t i = start; i < width; i += stride) {
      Floats<kCount> values = LoadFloats<kCount>(x_row, i, 0, width, wide);
      const Floats<kCount> w = LoadFloats<kCount>(weight, i, 0, width, wide);
      const Floats<kCount> b = LoadFloats<kCount>(bias, i, 0, width, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        values.at[j] = (values.at[j] - row_mean) * row_rstd * w.at[j] + b.at[j];
      }
      StoreFloats(values, y_row, i, 0, width, wide);
    }
    if (threadIdx.x == 0) {
      mean[row] = row_mean;
      rstd[row] = row_rstd;
    }
  }
}

// With xhat = (x - mean) rstd and g = dy * weight:
// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)) + residual.
template <typename T>
__global__ void LayerNormBackwardInputKernel(LayerNormShape shape, bool wide, const T* dy,
                                             const T* x, const float* weight, const float* mean,
                                             const float* rstd, const T* residual, T* dx) {
  constexpr int kCount = kPack<T>;
  __shared__ float shared[64];
  const float count = static_cast<float>(shape.width);
  const int64_t start = static_cast<int64_t>(threadIdx.x) * kCount, width = shape.width;
  const int64_t stride = static_cast<int64_t>(blockDim.x) * kCount;
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const T* x_row = x + row * width;
    const T* dy_row = dy + row * width;
    const float row_mean = mean[row], row_rstd = rstd[row];
    float sum_g = 0.0f, sum_gx = 0.0f;
    for (int64_t i = start; i < width; i += stride) {
      const Floats<kCount> values = LoadFloats<kCount>(x_row, i, 0, width, wide);
      const Floats<kCount> d = LoadFloats<kCount>(dy_row, i, 0, width, wide);
      const Floats<kCount> w = LoadFloats<kCount>(weight, i, 0, width, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const float g = d.at[j] * w.at[j];  // 0 beyond the row
        sum_g += g;
        sum_gx += g * ((values.at[j] - row_mean) * row_rstd);
      }
    }
    const TwoSums sums = BlockSumTwo(sum_g, sum_gx, shared);
    const float mean_g = sums.first / count, mean_gx = sums.second / count;
    for (int64_t i = start; i < width; i += stride) {
      Floats<kCount> values = LoadFloats<kCount>(x_row, i, 0, width, wide);
      const Floats<kCount> d = LoadFloats<kCount>(dy_row, i, 0, width, wide);
      const Floats<kCount> w = LoadFloats<kCount>(weight, i, 0, width, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const float g = d.at[j] * w.at[j];
        const float xhat = (values.at[j] - row_mean) * row_rstd;
        values.at[j] = row_rstd * (g - mean_g - xhat * mean_gx);
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

}  // namespace

template <typename T>
cudaError_t LayerNorm(cudaStream_t stream, LayerNormShape shape, const T* x, const float* weight,
                      const float* bias, float epsilon, T* y, float* mean, float* rstd) {
  return Launch(LayerNormKernel<T>, RowLaunch(shape.rows, shape.width, kPack<T>), 0, stream, shape,
                RowsAligned<T>(shape.width, x, y, weight, bias), x, weight, bias, epsilon, y, mean,
                rstd);
}

template <typename T>
cudaError_t LayerNormBackwardInput(cudaStream_t stream, LayerNormShape shape, const T* dy,
                                   const T* x, const float* weight, const float* mean,
                                   const float* rstd, const T* residual, T* dx) {
  return Launch(LayerNormBackwardInputKernel<T>, RowLaunch(shape.rows, shape.width, kPack<T>), 0,
                stream, shape, RowsAligned<T>(shape.width, dy, x, dx, weight, residual), dy, x,
                weight, mean, rstd, residual, dx);
}

template <typename T>
cudaError_t LayerNormBackwardWeight(cudaStream_t stream, LayerNormShape shape, const T* dy,
                                    const T* x, const float* mean, const float* rstd,
                                    float* d_weight, float* d_bias, float* scratch) {
  const ColumnSumPlan plan = PlanColumnSum(shape.rows, shape.width, 2, kPack<T>);
  const ColumnShares shares = {shape.rows, shape.width, plan.chunks, plan.rows_per_chunk};
  float* const norm_sums = scratch + plan.chunks * shape.width;
  const cudaError_t error =
      Launch(ColumnPartialKernel<T, true>, plan.partial, 0, stream, shares,
             RowsAligned<T>(shape.width, dy, x), dy, x, mean, rstd, scratch, norm_sums);
  if (error != cudaSuccess) return error;
  return Launch(ColumnTotalKernel<float>, plan.total, 0, stream, shares, scratch, d_bias, d_weight);
}

#define STAGECOACH_INSTANTIATE(T)                                                                 \
  template cudaError_t LayerNorm(cudaStream_t, LayerNormShape, const T*, const float*,            \
                                 const float*, float, T*, float*, float*);                        \
  template cudaError_t LayerNormBackwardInput(cudaStream_t, LayerNormShape, const T*, const T*,   \
                                              const float*, const float*, const float*, const T*, \
                                              T*);                                                \
  template cudaError_t LayerNormBackwardWeight(cudaStream_t, LayerNormShape, const T*, const T*,  \
                                               const float*, const float*, float*, float*, float*)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
