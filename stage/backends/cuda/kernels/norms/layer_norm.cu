// Layer norm: a block a row, which it reads from memory once and then from its cache. The mean is
// taken in two steps, so that a row far from zero loses nothing; the variance is of centred values.
#include "stage/backends/cuda/kernels/norms/layer_norm.h"
#include "stage/backends/cuda/kernels/norms/norm_backward.cuh"
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

}  // namespace

template <typename T>
cudaError_t LayerNorm(cudaStream_t stream, LayerNormShape shape, const T* x, const float* weight,
                      const float* bias, float epsilon, T* y, float* mean, float* rstd) {
  return Launch(LayerNormKernel<T>, RowLaunch(shape.rows, shape.width, kPack<T>), 0, stream, shape,
                RowsAligned<T>(shape.width, x, y, weight, bias), x, weight, bias, epsilon, y, mean,
                rstd);
}

template <typename T>
cudaError_t LayerNormBackward(cudaStream_t stream, NormPart part, const NormGradients<T>& all,
                              float* scratch) {
  return NormBackward<T, true>(stream, part, all, scratch);
}

#define STAGECOACH_INSTANTIATE(T)                                                      \
  template cudaError_t LayerNorm(cudaStream_t, LayerNormShape, const T*, const float*, \
                                 const float*, float, T*, float*, float*);             \
  template cudaError_t LayerNormBackward(cudaStream_t, NormPart, const NormGradients<T>&, float*)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
