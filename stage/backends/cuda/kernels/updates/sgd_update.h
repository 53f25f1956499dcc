// State: velocity, or null. C++17, as stage/backends/cuda/kernels.h says.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_SGD_UPDATE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_SGD_UPDATE_H_

#include "stage/backends/cuda/kernels/updates/update_table.h"

namespace stagecoach::cuda {

struct SgdFactors {
  float gradient_scale, learning_rate, momentum;
  uint32_t nesterov;
};
cudaError_t Sgd(cudaStream_t stream, const UpdateTable& table, const SgdFactors& factors);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_SGD_UPDATE_H_
