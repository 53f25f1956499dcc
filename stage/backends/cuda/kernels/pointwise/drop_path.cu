#include "stage/backends/cuda/kernels/pointwise/drop_path.h"
#include "stage/backends/cuda/packs.cuh"

namespace stagecoach::cuda {
namespace {

// A pack draws for the samples that it has elements of, mostly one.
template <typename T>
__global__ void DropPathKernel(const T* x, T* y, int64_t n, int64_t each, bool wide,
                               DropoutRule rule, PhiloxStream random) {
  constexpr int kCount = kPack<T>;
  for (int64_t i = GlobalThread() * kCount; i < n; i += GlobalThreads() * kCount) {
    Floats<kCount> values = LoadFloats<kCount>(x, i, 0, n, wide);
    int64_t sample = -1;
    bool keep = false;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const int64_t own = (i + j) / each;
      if (own != sample) {
        sample = own;
        const PhiloxWords words = PhiloxBlock(random, static_cast<uint32_t>(sample / 4));
        keep = PhiloxWord(words, static_cast<uint32_t>(sample % 4)) >= rule.threshold;
      }
      values.at[j] = keep ? values.at[j] * rule.scale : 0.0f;
    }
    StoreFloats(values, y, i, 0, n, wide);
  }
}

}  // namespace

template <typename T>
cudaError_t DropPath(cudaStream_t stream, const T* x, T* y, int64_t n, int64_t each,
                     DropoutRule rule, PhiloxStream random) {
  return Launch(DropPathKernel<T>, ElementLaunch(n, kPack<T>), 0, stream, x, y, n, each,
                Aligned(x, y), rule, random);
}

#define STAGECOACH_INSTANTIATE(T)                                                          \
  template cudaError_t DropPath(cudaStream_t, const T*, T*, int64_t, int64_t, DropoutRule, \
                                PhiloxStream)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
