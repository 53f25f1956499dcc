#include "stage/backends/cuda/kernels/pointwise/dropout.h"
#include "stage/backends/cuda/packs.cuh"

namespace stagecoach::cuda {
namespace {

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

}  // namespace

template <typename T>
cudaError_t Dropout(cudaStream_t stream, const T* x, T* y, int64_t n, DropoutRule rule,
                    PhiloxStream random) {
  return Launch(DropoutKernel<T>, ElementLaunch(n, kPack<T>), 0, stream, x, y, n, Aligned(x, y),
                rule, random);
}

#define STAGECOACH_INSTANTIATE(T) \
  template cudaError_t Dropout(cudaStream_t, const T*, T*, int64_t, DropoutRule, PhiloxStream)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
