// The CUDA runtime behind DeviceApi. Needs no CUDA header, so that tests and metrics can ask for
// cards.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_CUDA_DEVICE_API_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_CUDA_DEVICE_API_H_

#include <memory>

#include "stage/backends/device/device_api.h"

namespace stagecoach {

std::shared_ptr<DeviceApi> MakeCudaDeviceApi();

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_CUDA_DEVICE_API_H_
