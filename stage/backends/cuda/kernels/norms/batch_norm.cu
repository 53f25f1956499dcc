// Statistics by column sums in a fixed order, the variance of centred values; the rest element by
// element.
#include "stage/backends/cuda/column_sums.cuh"
#include "stage/backends/cuda/kernels/norms/batch_norm.h"

namespace stagecoach::cuda {
namespace {

// What a row adds to the sums of its columns.
template <typename T>
struct ValueTerm {
  const T* x;
  int64_t width;
  bool wide;
  __device__ __forceinline__ Floats<kPack<T>> operator()(int64_t row, int64_t column) const {
    return LoadFloats<kPack<T>>(x + row * width, column, 0, width, wide);
  }
};
template <typename T>
struct SquareTerm {  // of x - mean
  const T* x;
  const float* mean;
  int64_t width;
  bool wide;
  __device__ __forceinline__ Floats<kPack<T>> operator()(int64_t row, int64_t column) const {
    Floats<kPack<T>> values = LoadFloats<kPack<T>>(x + row * width, column, 0, width, wide);
    const Floats<kPack<T>> own = LoadFloats<kPack<T>>(mean, column, 0, width, wide);
#pragma unroll
    for (int j = 0; j < kPack<T>; ++j) {
      const float centred = values.at[j] - own.at[j];
      values.at[j] = centred * centred;
    }
    return values;
  }
};
template <typename T>
struct ProductTerm {  // dy * xhat
  const T *dy, *x;
  const float *mean, *rstd;
  int64_t width;
  bool wide;
  __device__ __forceinline__ Floats<kPack<T>> operator()(int64_t row, int64_t column) const {
    Floats<kPack<T>> values = LoadFloats<kPack<T>>(dy + row * width, column, 0, width, wide);
    const Floats<kPack<T>> at = LoadFloats<kPack<T>>(x + row * width, column, 0, width, wide);
    const Floats<kPack<T>> own = LoadFloats<kPack<T>>(mean, column, 0, width, wide);
    const Floats<kPack<T>> scale = LoadFloats<kPack<T>>(rstd, column, 0, width, wide);
#pragma unroll
    for (int j = 0; j < kPack<T>; ++j) values.at[j] *= (at.at[j] - own.at[j]) * scale.at[j];
    return values;
  }
};

__global__ void MeanKernel(ChannelShape s, float* mean) {
  for (int64_t c = GlobalThread(); c < s.channels; c += GlobalThreads()) {
    mean[c] /= static_cast<float>(s.rows);
  }
}
// variance: the sums of squares.
__global__ void VarianceKernel(ChannelShape s, float epsilon, float* variance, float* rstd) {
  for (int64_t c = GlobalThread(); c < s.channels; c += GlobalThreads()) {
    variance[c] /= static_cast<float>(s.rows);
    rstd[c] = 1.0f / sqrtf(variance[c] + epsilon);
  }
}
__global__ void FoldKernel(ChannelShape s, const float* mean, const float* variance,
                           double* moments) {
  double *counts = moments, *means = counts + s.channels, *squares = means + s.channels;
  const auto count = static_cast<double>(s.rows);
  for (int64_t c = GlobalThread(); c < s.channels; c += GlobalThreads()) {
    const double all = counts[c] + count, delta = mean[c] - means[c];
    means[c] += delta * (count / all);
    squares[c] += variance[c] * count + delta * delta * (counts[c] * count / all);
    counts[c] = all;
  }
}
__global__ void CommitKernel(int64_t channels, const double* moments, double momentum, float* mean,
                             float* variance) {
  const double *counts = moments, *means = counts + channels, *squares = means + channels;
  for (int64_t c = GlobalThread(); c < channels; c += GlobalThreads()) {
    const double unbiased = squares[c] / (counts[c] - 1);
    mean[c] = static_cast<float>((1 - momentum) * mean[c] + momentum * means[c]);
    variance[c] = static_cast<float>((1 - momentum) * variance[c] + momentum * unbiased);
  }
}

template <typename T>
__global__ void BatchNormKernel(ChannelShape s, const T* x, const float* mean, const float* rstd,
                                const float* weight, const float* bias, T* y) {
  for (int64_t i = GlobalThread(); i < s.rows * s.channels; i += GlobalThreads()) {
    const int64_t c = i % s.channels;
    y[i] = FromFloat<T>((ToFloat(x[i]) - mean[c]) * rstd[c] * weight[c] + bias[c]);
  }
}

template <typename T>
__global__ void BatchNormFixedKernel(ChannelShape s, const T* x, const float* mean,
                                     const float* variance, float epsilon, const float* weight,
                                     const float* bias, T* y) {
  for (int64_t i = GlobalThread(); i < s.rows * s.channels; i += GlobalThreads()) {
    const int64_t c = i % s.channels;
    const float rstd = 1.0f / sqrtf(variance[c] + epsilon);
    y[i] = FromFloat<T>((ToFloat(x[i]) - mean[c]) * rstd * weight[c] + bias[c]);
  }
}

template <typename T>
__global__ void BatchNormInputGradientKernel(ChannelShape s, BatchNormFactors by, const T* dy,
                                             const T* x, T* dx) {
  const float inverse = 1.0f / static_cast<float>(s.rows);
  for (int64_t i = GlobalThread(); i < s.rows * s.channels; i += GlobalThreads()) {
    const int64_t c = i % s.channels;
    const float xhat = (ToFloat(x[i]) - by.mean[c]) * by.rstd[c];
    const float mean = (by.d_bias[c] + xhat * by.d_weight[c]) * inverse;
    dx[i] = FromFloat<T>(by.weight[c] * by.rstd[c] * (ToFloat(dy[i]) - mean));
  }
}

// target[channels] = the sums of the term.
template <typename T, typename Term>
cudaError_t SumOver(cudaStream_t stream, ChannelShape shape, Term term, float* target,
                    float* scratch) {
  const cudaError_t error = Fill(stream, target, 0.0f, shape.channels);
  if (error != cudaSuccess) return error;
  return SumTerms<T>(stream, shape.rows, shape.channels, term, target, scratch);
}

}  // namespace

template <typename T>
cudaError_t BatchNorm(cudaStream_t stream, ChannelShape shape, const T* x, const float* weight,
                      const float* bias, float epsilon, T* y, float* mean, float* rstd,
                      float* variance, float* scratch) {
  const bool wide = RowsAligned<T>(shape.channels, x, mean, variance);
  const LaunchShape channels = ElementLaunch(shape.channels);
  cudaError_t error =
      SumOver<T>(stream, shape, ValueTerm<T>{x, shape.channels, wide}, mean, scratch);
  if (error == cudaSuccess) error = Launch(MeanKernel, channels, 0, stream, shape, mean);
  if (error == cudaSuccess) {
    error =
        SumOver<T>(stream, shape, SquareTerm<T>{x, mean, shape.channels, wide}, variance, scratch);
  }
  if (error == cudaSuccess) {
    error = Launch(VarianceKernel, channels, 0, stream, shape, epsilon, variance, rstd);
  }
  if (error != cudaSuccess) return error;
  return Launch(BatchNormKernel<T>, ElementLaunch(shape.rows * shape.channels), 0, stream, shape, x,
                mean, rstd, weight, bias, y);
}

template <typename T>
cudaError_t BatchNormSums(cudaStream_t stream, ChannelShape shape, const T* dy, const T* x,
                          const float* mean, const float* rstd, float* d_weight, float* d_bias,
                          float* scratch) {
  const bool wide = RowsAligned<T>(shape.channels, dy, x, mean, rstd);
  const cudaError_t error = SumOver<T>(
      stream, shape, ProductTerm<T>{dy, x, mean, rstd, shape.channels, wide}, d_weight, scratch);
  if (error != cudaSuccess) return error;
  return SumOver<T>(stream, shape, ValueTerm<T>{dy, shape.channels, wide}, d_bias, scratch);
}

template <typename T>
cudaError_t BatchNormInputGradient(cudaStream_t stream, ChannelShape shape,
                                   const BatchNormFactors& factors, const T* dy, const T* x,
                                   T* dx) {
  return Launch(BatchNormInputGradientKernel<T>, ElementLaunch(shape.rows * shape.channels), 0,
                stream, shape, factors, dy, x, dx);
}

template <typename T>
cudaError_t BatchNormFixed(cudaStream_t stream, ChannelShape shape, const T* x, const float* weight,
                           const float* bias, const float* mean, const float* variance,
                           float epsilon, T* y) {
  return Launch(BatchNormFixedKernel<T>, ElementLaunch(shape.rows * shape.channels), 0, stream,
                shape, x, mean, variance, epsilon, weight, bias, y);
}

cudaError_t BatchNormFold(cudaStream_t stream, ChannelShape shape, const float* mean,
                          const float* variance, double* moments) {
  return Launch(FoldKernel, ElementLaunch(shape.channels), 0, stream, shape, mean, variance,
                moments);
}

cudaError_t BatchNormCommit(cudaStream_t stream, int64_t channels, const double* moments,
                            double momentum, float* mean, float* variance) {
  return Launch(CommitKernel, ElementLaunch(channels), 0, stream, channels, moments, momentum, mean,
                variance);
}

#define STAGECOACH_INSTANTIATE(T)                                                                  \
  template cudaError_t BatchNorm(cudaStream_t, ChannelShape, const T*, const float*, const float*, \
                                 float, T*, float*, float*, float*, float*);                       \
  template cudaError_t BatchNormFixed(cudaStream_t, ChannelShape, const T*, const float*,          \
                                      const float*, const float*, const float*, float, T*);        \
  template cudaError_t BatchNormSums(cudaStream_t, ChannelShape, const T*, const T*, const float*, \
                                     const float*, float*, float*, float*);                        \
  template cudaError_t BatchNormInputGradient(cudaStream_t, ChannelShape, const BatchNormFactors&, \
                                              const T*, const T*, T*)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
