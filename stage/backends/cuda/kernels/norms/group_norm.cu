// A block a group of a sample, whose elements its threads take in turn. As in layer norm the mean
// is taken in two steps, and the variance is of centred values.
#include "stage/backends/cuda/column_sums.cuh"
#include "stage/backends/cuda/kernels/norms/group_norm.h"

namespace stagecoach::cuda {
namespace {

// Where the elements of a block's group are.
struct GroupPlaces {
  int64_t first, width, channels, count;
  __device__ __forceinline__ GroupPlaces(const GroupShape& s, int64_t row)
      : first(row / s.groups * s.places * s.channels + row % s.groups * (s.channels / s.groups)),
        width(s.channels / s.groups),
        channels(s.channels),
        count(s.places * width) {}
  __device__ __forceinline__ int64_t At(int64_t i) const {
    return first + i / width * channels + i % width;
  }
};

template <typename T>
__global__ void GroupNormKernel(GroupShape s, const T* x, const float* weight, const float* bias,
                                float epsilon, T* y, float* mean, float* rstd) {
  __shared__ float shared[64];
  for (int64_t row = blockIdx.x; row < s.samples * s.groups; row += gridDim.x) {
    const GroupPlaces places(s, row);
    const float count = static_cast<float>(places.count);
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < places.count; i += blockDim.x)
      sum += ToFloat(x[places.At(i)]);
    const float rough = BlockSum(sum, shared) / count;
    float rest = 0.0f, squares = 0.0f;
    for (int64_t i = threadIdx.x; i < places.count; i += blockDim.x) {
      const float centred = ToFloat(x[places.At(i)]) - rough;
      rest += centred;
      squares += centred * centred;
    }
    const TwoSums sums = BlockSumTwo(rest, squares, shared);
    const float correction = sums.first / count;
    const float variance = sums.second / count - correction * correction;
    const float row_mean = rough + correction;
    const float row_rstd = 1.0f / sqrtf(fmaxf(variance, 0.0f) + epsilon);
    for (int64_t i = threadIdx.x; i < places.count; i += blockDim.x) {
      const int64_t at = places.At(i), c = at % s.channels;
      y[at] = FromFloat<T>((ToFloat(x[at]) - row_mean) * row_rstd * weight[c] + bias[c]);
    }
    if (threadIdx.x == 0) {
      mean[row] = row_mean;
      rstd[row] = row_rstd;
    }
  }
}

// A block has kColumnThreads channels of a sample; lane l of 8 takes places l, l + 8, ..., the
// lanes are added in order.
template <typename T>
__global__ void GroupNormSumsKernel(GroupShape s, const T* dy, const T* x, const float* mean,
                                    const float* rstd, float* d_weight, float* d_bias) {
  __shared__ float product_of[kColumnLanes][kColumnThreads];
  __shared__ float sum_of[kColumnLanes][kColumnThreads];
  const int64_t blocks = (s.channels + kColumnThreads - 1) / kColumnThreads;
  const int in_block = static_cast<int>(threadIdx.x) % kColumnThreads;
  const int lane = static_cast<int>(threadIdx.x) / kColumnThreads;
  const int64_t width = s.channels / s.groups;
  for (int64_t block = blockIdx.x; block < s.samples * blocks; block += gridDim.x) {
    const int64_t sample = block / blocks, c = block % blocks * kColumnThreads + in_block;
    float product = 0.0f, sum = 0.0f;
    if (c < s.channels) {
      const int64_t row = sample * s.groups + c / width;
      const float row_mean = mean[row], row_rstd = rstd[row];
      for (int64_t place = lane; place < s.places; place += kColumnLanes) {
        const int64_t at = (sample * s.places + place) * s.channels + c;
        const float own = ToFloat(dy[at]);
        product += own * ((ToFloat(x[at]) - row_mean) * row_rstd);
        sum += own;
      }
    }
    product_of[lane][in_block] = product;
    sum_of[lane][in_block] = sum;
    __syncthreads();
    if (lane == 0 && c < s.channels) {
      for (int other = 1; other < kColumnLanes; ++other) {
        product += product_of[other][in_block];
        sum += sum_of[other][in_block];
      }
      d_weight[sample * s.channels + c] = product;
      d_bias[sample * s.channels + c] = sum;
    }
    __syncthreads();  // the next block of channels writes
  }
}

template <typename T>
__global__ void GroupNormInputGradientKernel(GroupShape s, GroupNormFactors by, const T* dy,
                                             const T* x, T* dx) {
  __shared__ float shared[64];
  const int64_t width = s.channels / s.groups;
  for (int64_t row = blockIdx.x; row < s.samples * s.groups; row += gridDim.x) {
    const GroupPlaces places(s, row);
    const int64_t sample = row / s.groups, first = row % s.groups * width;
    float sum_g = 0.0f, sum_gx = 0.0f;
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
      const int64_t of = sample * s.channels + first + i;
      sum_g += by.weight[first + i] * by.d_bias[of];
      sum_gx += by.weight[first + i] * by.d_weight[of];
    }
    const TwoSums sums = BlockSumTwo(sum_g, sum_gx, shared);
    const float count = static_cast<float>(places.count);
    const float mean_g = sums.first / count, mean_gx = sums.second / count;
    const float row_mean = by.mean[row], row_rstd = by.rstd[row];
    for (int64_t i = threadIdx.x; i < places.count; i += blockDim.x) {
      const int64_t at = places.At(i);
      const float xhat = (ToFloat(x[at]) - row_mean) * row_rstd;
      const float g = ToFloat(dy[at]) * by.weight[at % s.channels];
      dx[at] = FromFloat<T>(row_rstd * (g - mean_g - xhat * mean_gx));
    }
  }
}

struct SampleTerm {
  const float* sums;
  int64_t width;
  bool wide;
  __device__ __forceinline__ Floats<kPack<float>> operator()(int64_t row, int64_t column) const {
    return LoadFloats<kPack<float>>(sums + row * width, column, 0, width, wide);
  }
};

LaunchShape GroupLaunch(const GroupShape& s) {
  return RowLaunch(s.samples * s.groups, s.places * (s.channels / s.groups), 1);
}

}  // namespace

template <typename T>
cudaError_t GroupNorm(cudaStream_t stream, GroupShape shape, const T* x, const float* weight,
                      const float* bias, float epsilon, T* y, float* mean, float* rstd) {
  return Launch(GroupNormKernel<T>, GroupLaunch(shape), 0, stream, shape, x, weight, bias, epsilon,
                y, mean, rstd);
}

template <typename T>
cudaError_t GroupNormSums(cudaStream_t stream, GroupShape shape, const T* dy, const T* x,
                          const float* mean, const float* rstd, float* d_weight, float* d_bias) {
  const int64_t blocks = shape.samples * ((shape.channels + kColumnThreads - 1) / kColumnThreads);
  const LaunchShape launch = {static_cast<uint32_t>(blocks < kMaxGrid ? blocks : kMaxGrid),
                              kColumnThreads * kColumnLanes};
  return Launch(GroupNormSumsKernel<T>, launch, 0, stream, shape, dy, x, mean, rstd, d_weight,
                d_bias);
}

template <typename T>
cudaError_t GroupNormInputGradient(cudaStream_t stream, GroupShape shape,
                                   const GroupNormFactors& factors, const T* dy, const T* x,
                                   T* dx) {
  return Launch(GroupNormInputGradientKernel<T>, GroupLaunch(shape), 0, stream, shape, factors, dy,
                x, dx);
}

cudaError_t GroupNormWeightGradient(cudaStream_t stream, GroupShape shape, const float* sums,
                                    float* target, float* scratch) {
  const SampleTerm term = {sums, shape.channels, RowsAligned<float>(shape.channels, sums)};
  return SumTerms<float>(stream, shape.samples, shape.channels, term, target, scratch);
}

#define STAGECOACH_INSTANTIATE(T)                                                                \
  template cudaError_t GroupNorm(cudaStream_t, GroupShape, const T*, const float*, const float*, \
                                 float, T*, float*, float*);                                     \
  template cudaError_t GroupNormSums(cudaStream_t, GroupShape, const T*, const T*, const float*, \
                                     const float*, float*, float*);                              \
  template cudaError_t GroupNormInputGradient(cudaStream_t, GroupShape, const GroupNormFactors&, \
                                              const T*, const T*, T*)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
