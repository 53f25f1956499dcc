// Maps of any number of arrays, element by element. Outputs may be inputs.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_MAPS_CUH_
#define STAGECOACH_STAGE_BACKENDS_CUDA_MAPS_CUH_

#include "stage/backends/cuda/packs.cuh"

namespace stagecoach::cuda {

template <typename T, int kInputs, int kOutputs>
struct MapArrays {
  const T* in[kInputs];
  T* out[kOutputs];
};

// f(x, y): from kInputs floats to kOutputs floats.
template <typename T, int kInputs, int kOutputs, typename F>
__global__ void MapArraysKernel(MapArrays<T, kInputs, kOutputs> arrays, int64_t n, bool wide, F f) {
  constexpr int kCount = kPack<T>;
  for (int64_t i = GlobalThread() * kCount; i < n; i += GlobalThreads() * kCount) {
    Floats<kCount> in[kInputs], out[kOutputs];
#pragma unroll
    for (int a = 0; a < kInputs; ++a) in[a] = LoadFloats<kCount>(arrays.in[a], i, 0, n, wide);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      float x[kInputs], y[kOutputs];
#pragma unroll
      for (int a = 0; a < kInputs; ++a) x[a] = in[a].at[j];
      f(x, y);
#pragma unroll
      for (int a = 0; a < kOutputs; ++a) out[a].at[j] = y[a];
    }
#pragma unroll
    for (int a = 0; a < kOutputs; ++a) StoreFloats(out[a], arrays.out[a], i, 0, n, wide);
  }
}

template <typename T, int kInputs, int kOutputs, typename F>
cudaError_t Map(cudaStream_t stream, const MapArrays<T, kInputs, kOutputs>& arrays, int64_t n,
                F f) {
  bool wide = true;
  for (const T* array : arrays.in) wide = wide && Aligned(array);
  for (const T* array : arrays.out) wide = wide && Aligned(array);
  return Launch(MapArraysKernel<T, kInputs, kOutputs, F>, ElementLaunch(n, kPack<T>), 0, stream,
                arrays, n, wide, f);
}

// The logistic function without an overflow, and its slope.
struct Logistic {
  float gate, slope;
};
STAGECOACH_HOST_DEVICE Logistic LogisticOf(float x) {
  const float e = expf(-fabsf(x)), r = 1.0f / (1.0f + e);
  return {x >= 0.0f ? r : e * r, e * r * r};
}
STAGECOACH_HOST_DEVICE float SiluSlope(float x, const Logistic& s) {
  return s.slope == 0.0f ? s.gate : s.gate + x * s.slope;  // 0 * infinity is no number
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_MAPS_CUH_
