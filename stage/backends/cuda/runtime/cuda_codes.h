#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_CUDA_CODES_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_CUDA_CODES_H_

#include <cuda_runtime_api.h>

#include "stage/backends/device/device_api.h"

namespace stagecoach {

// The result of a runtime call as a code of DeviceApi and GraphApi. A failed call also leaves its
// error for cudaGetLastError. It is cleared here, because the next caller asks about a launch.
inline int CudaCode(cudaError_t error) {
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
  return error;
}

inline cudaStream_t CudaStream(DeviceStream stream) { return static_cast<cudaStream_t>(stream); }

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_CUDA_CODES_H_
