#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_CUDA_CODES_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_CUDA_CODES_H_

#include <cuda_runtime_api.h>

#include "stage/backends/device/device_api.h"

namespace stagecoach {

// What a call of the runtime answered, as DeviceApi and GraphApi say it. A failed call also leaves
// its error for the next cudaGetLastError, which asks about a launch and must not find what is
// reported here.
inline int CudaCode(cudaError_t error) {
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
  return error;
}

inline cudaStream_t CudaStream(DeviceStream stream) { return static_cast<cudaStream_t>(stream); }

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_CUDA_CODES_H_
