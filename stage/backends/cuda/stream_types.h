// The few names of the CUDA runtime that the kernels' interface needs. They come from the toolkit.
// In tests they come from the emulation that runs the kernels' source on the host.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_STREAM_TYPES_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_STREAM_TYPES_H_

#if defined(STAGECOACH_EMULATE_CUDA)
enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9
};
using cudaStream_t = void*;
#else
#include <cuda_runtime_api.h>
#endif

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_STREAM_TYPES_H_
