// Fills and conversions. Bound by memory: threads stride over the elements in packs
// of 16 bytes.
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/packs.cuh"

namespace stagecoach::cuda {
namespace {

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

template <typename From, typename To>
__global__ void ConvertKernel(const From* x, To* y, int64_t n, bool wide) {
  constexpr int kCount = kPack<Bf16>;
  for (int64_t i = GlobalThread() * kCount; i < n; i += GlobalThreads() * kCount) {
    StoreFloats(LoadFloats<kCount>(x, i, 0, n, wide), y, i, 0, n, wide);
  }
}

}  // namespace

template <typename T>
cudaError_t Fill(cudaStream_t stream, T* y, float value, int64_t n) {
  return Launch(FillKernel<T>, ElementLaunch(n, kPack<T>), 0, stream, y, value, n, Aligned(y));
}

template <typename From, typename To>
cudaError_t Convert(cudaStream_t stream, const From* x, To* y, int64_t n) {
  return Launch(ConvertKernel<From, To>, ElementLaunch(n, kPack<Bf16>), 0, stream, x, y, n,
                Aligned(x, y));
}

template cudaError_t Fill(cudaStream_t, float*, float, int64_t);
template cudaError_t Fill(cudaStream_t, Bf16*, float, int64_t);
template cudaError_t Convert(cudaStream_t, const float*, Bf16*, int64_t);
template cudaError_t Convert(cudaStream_t, const Bf16*, float*, int64_t);
template cudaError_t Convert(cudaStream_t, const float*, float*, int64_t);
template cudaError_t Convert(cudaStream_t, const Bf16*, Bf16*, int64_t);

}  // namespace stagecoach::cuda
