// The parts of CUDA C++ that the kernels use, on the host. Blocks run one at a time; their threads
// are coroutines that switch at barriers. So tests without a card run the source that nvcc
// compiles. They cannot show the card's own arithmetic (fused multiply-add, its expf), memory order
// between warps, or speed.
// If a thread misses a barrier that others wait at, the program ends with a message. The order of
// threads between barriers can be reversed: if a result changes then, there is a race.
// Threads: one at a time.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_EMULATION_EMULATION_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_EMULATION_EMULATION_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "absl/functional/function_ref.h"
#include "stage/backends/cuda/launch_config.h"
#include "stage/backends/cuda/stream_types.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __shared__ static

namespace stagecoach::cuda::emulation {

struct Index {
  uint32_t x = 0;
};
extern Index thread_index, block_index, block_size, grid_size;

// The order of threads between barriers.
enum class Order { kAscending, kDescending };
void SetOrder(Order order);

// Runs body once for each thread of each block.
cudaError_t RunGrid(LaunchShape shape, size_t shared_bytes, absl::FunctionRef<void()> body);
// Kernels that ran since the start of the program; an empty grid does not count.
uint64_t Launches();
// While there is a recorder, launches go to it and do not run, as on a card that captures. Null:
// launches run.
using Recorder = std::function<void(std::function<void()>)>;
void SetRecorder(Recorder recorder);
// Null: launches run.
const Recorder* CurrentRecorder();
float* DynamicSharedMemory();
void BlockBarrier();
bool BlockOr(bool value);
// Bits of the lane `thread ^ mask` of the warp; every lane of the warp calls.
uint64_t ExchangeBits(uint64_t bits, int mask);
uint32_t Ballot(bool value);
[[noreturn]] void Trap();

}  // namespace stagecoach::cuda::emulation

#define threadIdx (::stagecoach::cuda::emulation::thread_index)
#define blockIdx (::stagecoach::cuda::emulation::block_index)
#define blockDim (::stagecoach::cuda::emulation::block_size)
#define gridDim (::stagecoach::cuda::emulation::grid_size)

inline void __syncthreads() { stagecoach::cuda::emulation::BlockBarrier(); }
inline int __syncthreads_or(int value) { return stagecoach::cuda::emulation::BlockOr(value != 0); }
inline uint32_t __ballot_sync(unsigned, bool value) {
  return stagecoach::cuda::emulation::Ballot(value);
}
inline int __ffs(int value) { return __builtin_ffs(value); }
[[noreturn]] inline void __trap() { stagecoach::cuda::emulation::Trap(); }
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = stagecoach::cuda::emulation::ExchangeBits(bits, mask);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

namespace stagecoach::cuda {

template <typename... Params, typename... Args>
cudaError_t Launch(void (*kernel)(Params...), LaunchShape shape, size_t shared_bytes, cudaStream_t,
                   Args... args) {
  const auto run = [=] {
    return emulation::RunGrid(shape, shared_bytes, [&] { kernel(static_cast<Params>(args)...); });
  };
  const emulation::Recorder* const recorder = emulation::CurrentRecorder();
  if (recorder == nullptr) return run();
  (*recorder)([run] { run(); });
  return cudaSuccess;
}

inline float* DynamicShared() { return emulation::DynamicSharedMemory(); }

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_EMULATION_EMULATION_H_
