// A block a row, which it reads from memory once and then from its cache.
#include "stage/backends/cuda/kernels/norms/norm_backward.cuh"
#include "stage/backends/cuda/kernels/norms/rms_norm.h"

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

}  // namespace

template <typename T>
cudaError_t RmsNorm(cudaStream_t stream, RowsShape shape, const T* x, const float* weight,
                    float epsilon, T* y, float* rstd) {
  return Launch(RmsNormKernel<T>, RowLaunch(shape.rows, shape.width, kPack<T>), 0, stream, shape,
                RowsAligned<T>(shape.width, x, y, weight), x, weight, epsilon, y, rstd);
}

template <typename T>
cudaError_t RmsNormBackward(cudaStream_t stream, NormPart part, const NormGradients<T>& all,
                            float* scratch) {
  return NormBackward<T, false>(stream, part, all, scratch);
}

#define STAGECOACH_INSTANTIATE(T)                                                          \
  template cudaError_t RmsNorm(cudaStream_t, RowsShape, const T*, const float*, float, T*, \
                               float*);                                                    \
  template cudaError_t RmsNormBackward(cudaStream_t, NormPart, const NormGradients<T>&, float*)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
