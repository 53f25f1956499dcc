// Helpers of every kernel file: launches, and sums over a block in one fixed order.
// In tests the same sources are compiled for the host against emulation/emulation.h.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_LAUNCH_CUH_
#define STAGECOACH_STAGE_BACKENDS_CUDA_LAUNCH_CUH_

#include <cstddef>
#include <cstdint>

#include "stage/backends/cuda/launch_config.h"

#if defined(STAGECOACH_EMULATE_CUDA)
#include "stage/backends/cuda/emulation/emulation.h"
#else
#include <cuda_runtime.h>
#endif

namespace stagecoach::cuda {

#if !defined(STAGECOACH_EMULATE_CUDA)

// A kernel must opt in to more shared memory per block.
constexpr size_t kPlainSharedBytes = 48 * 1024;

template <typename... Params, typename... Args>
cudaError_t Launch(void (*kernel)(Params...), LaunchShape shape, size_t shared_bytes,
                   cudaStream_t stream, Args... args) {
  if (shape.grid == 0) return cudaSuccess;
  if (shared_bytes > kPlainSharedBytes) {
    const cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (error != cudaSuccess) return error;
  }
  kernel<<<shape.grid, shape.block, shared_bytes, stream>>>(static_cast<Params>(args)...);
  return cudaGetLastError();
}

// Aligned for packs of 16 bytes.
__device__ __forceinline__ float* DynamicShared() {
  extern __shared__ __align__(16) float stagecoach_dynamic_shared[];
  return stagecoach_dynamic_shared;
}

#endif  // !STAGECOACH_EMULATE_CUDA

constexpr unsigned kAllLanes = 0xffffffffu;

// Index of a thread in the whole grid, and how many there are.
__device__ __forceinline__ int64_t GlobalThread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t GlobalThreads() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

// Butterfly: at every step both partners add the same two numbers, so all lanes hold the same bits.
template <typename T>
__device__ __forceinline__ T WarpSum(T value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAllLanes, value, offset);
  return value;
}

__device__ __forceinline__ float WarpMax(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, offset));
  }
  return value;
}

// Every thread of the block calls and gets the sum. Whole warps, at most 32. `shared` holds a value
// a warp and may be used again after the call.
template <typename T>
__device__ __forceinline__ T BlockSum(T value, T* shared) {
  value = WarpSum(value);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  T sum = shared[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) sum += shared[warp];
  __syncthreads();  // the next call writes
  return sum;
}

// Two sums with the barriers of one; each has the bits of BlockSum. `shared` holds two values a
// warp.
struct TwoSums {
  float first, second;
};
__device__ __forceinline__ TwoSums BlockSumTwo(float first, float second, float* shared) {
  first = WarpSum(first);
  second = WarpSum(second);
  if (threadIdx.x % 32 == 0) {
    shared[threadIdx.x / 32] = first;
    shared[32 + threadIdx.x / 32] = second;
  }
  __syncthreads();
  TwoSums sums = {shared[0], shared[32]};
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) {
    sums.first += shared[warp];
    sums.second += shared[32 + warp];
  }
  __syncthreads();
  return sums;
}

// The same for kValues sums; each value becomes its sum. `shared` holds 32 values for each.
template <int kValues>
__device__ __forceinline__ void BlockSums(float (&values)[kValues], float* shared) {
#pragma unroll
  for (int v = 0; v < kValues; ++v) {
    values[v] = WarpSum(values[v]);
    if (threadIdx.x % 32 == 0) shared[v * 32 + threadIdx.x / 32] = values[v];
  }
  __syncthreads();
#pragma unroll
  for (int v = 0; v < kValues; ++v) {
    values[v] = shared[v * 32];
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) values[v] += shared[v * 32 + warp];
  }
  __syncthreads();
}

__device__ __forceinline__ float BlockMax(float value, float* shared) {
  value = WarpMax(value);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  float largest = shared[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) largest = fmaxf(largest, shared[warp]);
  __syncthreads();
  return largest;
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_LAUNCH_CUH_
