// Layer norm: a block a row. The mean is taken in two steps, so that a row far from zero loses
// nothing; the variance is of centred values.
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {
namespace {

__global__ void LayerNormKernel(LayerNormShape shape, const float* x, const float* weight,
                                const float* bias, float epsilon, float* y, float* mean,
                                float* rstd) {
  __shared__ float shared[32];
  const float count = static_cast<float>(shape.width);
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const float* x_row = x + row * shape.width;
    float* y_row = y + row * shape.width;
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < shape.width; i += blockDim.x) sum += x_row[i];
    const float rough = BlockSum(sum, shared) / count;
    float rest = 0.0f, squares = 0.0f;
    for (int64_t i = threadIdx.x; i < shape.width; i += blockDim.x) {
      const float centred = x_row[i] - rough;
      rest += centred;
      squares += centred * centred;
    }
    const float correction = BlockSum(rest, shared) / count;
    const float variance = BlockSum(squares, shared) / count - correction * correction;
    const float row_mean = rough + correction;
    const float row_rstd = 1.0f / sqrtf(fmaxf(variance, 0.0f) + epsilon);
    for (int64_t i = threadIdx.x; i < shape.width; i += blockDim.x) {
      y_row[i] = (x_row[i] - row_mean) * row_rstd * weight[i] + bias[i];
    }
    if (threadIdx.x == 0) {
      mean[row] = row_mean;
      rstd[row] = row_rstd;
    }
  }
}

// With xhat = (x - mean) rstd and g = dy * weight:
// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)).
__global__ void LayerNormBackwardInputKernel(LayerNormShape shape, const float* dy, const float* x,
                                             const float* weight, const float* mean,
                                             const float* rstd, float* dx) {
  __shared__ float shared[32];
  const float count = static_cast<float>(shape.width);
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const float* x_row = x + row * shape.width;
    const float* dy_row = dy + row * shape.width;
    float* dx_row = dx + row * shape.width;
    const float row_mean = mean[row], row_rstd = rstd[row];
    float sum_g = 0.0f, sum_gx = 0.0f;
    for (int64_t i = threadIdx.x; i < shape.width; i += blockDim.x) {
      const float g = dy_row[i] * weight[i];
      sum_g += g;
      sum_gx += g * ((x_row[i] - row_mean) * row_rstd);
    }
    const float mean_g = BlockSum(sum_g, shared) / count;
    const float mean_gx = BlockSum(sum_gx, shared) / count;
    for (int64_t i = threadIdx.x; i < shape.width; i += blockDim.x) {
      const float g = dy_row[i] * weight[i];
      const float xhat = (x_row[i] - row_mean) * row_rstd;
      dx_row[i] = row_rstd * (g - mean_g - xhat * mean_gx);
    }
  }
}

}  // namespace

cudaError_t LayerNorm(cudaStream_t stream, LayerNormShape shape, const float* x,
                      const float* weight, const float* bias, float epsilon, float* y, float* mean,
                      float* rstd) {
  return Launch(LayerNormKernel, RowLaunch(shape.rows, shape.width), 0, stream, shape, x, weight,
                bias, epsilon, y, mean, rstd);
}

cudaError_t LayerNormBackwardInput(cudaStream_t stream, LayerNormShape shape, const float* dy,
                                   const float* x, const float* weight, const float* mean,
                                   const float* rstd, float* dx) {
  return Launch(LayerNormBackwardInputKernel, RowLaunch(shape.rows, shape.width), 0, stream, shape,
                dy, x, weight, mean, rstd, dx);
}

}  // namespace stagecoach::cuda
