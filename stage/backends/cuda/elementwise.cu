// Elementwise operations. Bound by memory: threads stride over the elements in packs
// of 16 bytes.
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/packs.cuh"

namespace stagecoach::cuda {
namespace {

struct GeluValue {
  STAGECOACH_HOST_DEVICE float operator()(float x) const { return GeluTanh(x); }
};
struct GeluGradient {
  STAGECOACH_HOST_DEVICE float operator()(float dy, float x) const {
    return dy * GeluTanhDerivative(x);
  }
};
struct Sum {
  STAGECOACH_HOST_DEVICE float operator()(float a, float b) const { return a + b; }
};

template <typename T, typename F>
__global__ void MapKernel(const T* x, T* y, int64_t n, bool wide, F f) {
  constexpr int kCount = kPack<T>;
  for (int64_t i = GlobalThread() * kCount; i < n; i += GlobalThreads() * kCount) {
    Floats<kCount> values = LoadFloats<kCount>(x, i, 0, n, wide);
#pragma unroll
    for (int j = 0; j < kCount; ++j) values.at[j] = f(values.at[j]);
    StoreFloats(values, y, i, 0, n, wide);
  }
}

// y = f(a, b); y may be either.
template <typename T, typename F>
__global__ void MapTwoKernel(const T* a, const T* b, T* y, int64_t n, bool wide, F f) {
  constexpr int kCount = kPack<T>;
  for (int64_t i = GlobalThread() * kCount; i < n; i += GlobalThreads() * kCount) {
    Floats<kCount> values = LoadFloats<kCount>(a, i, 0, n, wide);
    const Floats<kCount> others = LoadFloats<kCount>(b, i, 0, n, wide);
#pragma unroll
    for (int j = 0; j < kCount; ++j) values.at[j] = f(values.at[j], others.at[j]);
    StoreFloats(values, y, i, 0, n, wide);
  }
}

// Four neighbours share a block of random words; a pack has one block or two.
template <typename T>
__global__ void DropoutKernel(const T* x, T* y, int64_t n, bool wide, DropoutRule rule,
                              PhiloxStream random) {
  constexpr int kCount = kPack<T>;
  for (int64_t i = GlobalThread() * kCount; i < n; i += GlobalThreads() * kCount) {
    Floats<kCount> values = LoadFloats<kCount>(x, i, 0, n, wide);
#pragma unroll
    for (int b = 0; b < kCount / 4; ++b) {
      const PhiloxWords words = PhiloxBlock(random, static_cast<uint32_t>(i / 4 + b));
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float& value = values.at[4 * b + j];
        const bool keep = PhiloxWord(words, static_cast<uint32_t>(j)) >= rule.threshold;
        value = keep ? value * rule.scale : 0.0f;
      }
    }
    StoreFloats(values, y, i, 0, n, wide);
  }
}

template <typename T>
__global__ void FillKernel(T* y, float value, int64_t n, bool wide) {
  constexpr int kCount = kPack<T>;
  Floats<kCount> values;
#pragma unroll
  for (int j = 0; j < kCount; ++j) values.at[j] = value;
  for (int64_t i = GlobalThread() * kCount; i < n; i += GlobalThreads() * kCount) {
    StoreFloats(values, y, i, 0, n, wide);
  }
}

// A pack is of one row: the last one of a row may be short.
template <typename T>
__global__ void AddBiasKernel(const T* bias, T* y, int64_t rows, int64_t columns, bool wide) {
  constexpr int kCount = kPack<T>;
  const int64_t row_packs = (columns + kCount - 1) / kCount;
  for (int64_t p = GlobalThread(); p < rows * row_packs; p += GlobalThreads()) {
    const int64_t row = p / row_packs, column = p % row_packs * kCount;
    T* const target = y + row * columns;
    Floats<kCount> values = LoadFloats<kCount>(target, column, 0, columns, wide);
    const Floats<kCount> added = LoadFloats<kCount>(bias, column, 0, columns, wide);
#pragma unroll
    for (int j = 0; j < kCount; ++j) values.at[j] += added.at[j];
    StoreFloats(values, target, column, 0, columns, wide);
  }
}

template <typename From, typename To>
__global__ void ConvertKernel(const From* x, To* y, int64_t n, bool wide) {
  constexpr int kCount = kPack<Bf16>;
  for (int64_t i = GlobalThread() * kCount; i < n; i += GlobalThreads() * kCount) {
    StoreFloats(LoadFloats<kCount>(x, i, 0, n, wide), y, i, 0, n, wide);
  }
}

}  // namespace

template <typename T>
cudaError_t Gelu(cudaStream_t stream, const T* x, T* y, int64_t n) {
  return Launch(MapKernel<T, GeluValue>, ElementLaunch(n, kPack<T>), 0, stream, x, y, n,
                Aligned(x, y), GeluValue{});
}

template <typename T>
cudaError_t GeluBackward(cudaStream_t stream, const T* dy, const T* x, T* dx, int64_t n) {
  return Launch(MapTwoKernel<T, GeluGradient>, ElementLaunch(n, kPack<T>), 0, stream, dy, x, dx, n,
                Aligned(dy, x, dx), GeluGradient{});
}

template <typename T>
cudaError_t Dropout(cudaStream_t stream, const T* x, T* y, int64_t n, DropoutRule rule,
                    PhiloxStream random) {
  return Launch(DropoutKernel<T>, ElementLaunch(n, kPack<T>), 0, stream, x, y, n, Aligned(x, y),
                rule, random);
}

template <typename T>
cudaError_t Add(cudaStream_t stream, const T* x, T* y, int64_t n) {
  return Launch(MapTwoKernel<T, Sum>, ElementLaunch(n, kPack<T>), 0, stream, y, x, y, n,
                Aligned(x, y), Sum{});
}

template <typename T>
cudaError_t Fill(cudaStream_t stream, T* y, float value, int64_t n) {
  return Launch(FillKernel<T>, ElementLaunch(n, kPack<T>), 0, stream, y, value, n, Aligned(y));
}

template <typename T>
cudaError_t AddBias(cudaStream_t stream, const T* bias, T* y, int64_t rows, int64_t columns) {
  const int64_t row_packs = (columns + kPack<T> - 1) / kPack<T>;
  return Launch(AddBiasKernel<T>, ElementLaunch(rows * row_packs), 0, stream, bias, y, rows,
                columns, RowsAligned<T>(columns, bias, y));
}

template <typename From, typename To>
cudaError_t Convert(cudaStream_t stream, const From* x, To* y, int64_t n) {
  return Launch(ConvertKernel<From, To>, ElementLaunch(n, kPack<Bf16>), 0, stream, x, y, n,
                Aligned(x, y));
}

#define STAGECOACH_INSTANTIATE(T)                                                               \
  template cudaError_t Gelu(cudaStream_t, const T*, T*, int64_t);                               \
  template cudaError_t GeluBackward(cudaStream_t, const T*, const T*, T*, int64_t);             \
  template cudaError_t Dropout(cudaStream_t, const T*, T*, int64_t, DropoutRule, PhiloxStream); \
  template cudaError_t Add(cudaStream_t, const T*, T*, int64_t);                                \
  template cudaError_t Fill(cudaStream_t, T*, float, int64_t);                                  \
  template cudaError_t AddBias(cudaStream_t, const T*, T*, int64_t, int64_t)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE
template cudaError_t Convert(cudaStream_t, const float*, Bf16*, int64_t);
template cudaError_t Convert(cudaStream_t, const Bf16*, float*, int64_t);

}  // namespace stagecoach::cuda
