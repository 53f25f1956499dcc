// States: square, and velocity or null. C++17, as stage/backends/cuda/kernels.h says.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_RMSPROP_UPDATE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_RMSPROP_UPDATE_H_

#include "stage/backends/cuda/kernels/updates/update_table.h"

namespace stagecoach::cuda {

struct RmsPropFactors {
  float gradient_scale, inner_rate, outer_rate, decay, momentum, inside, outside;
};
cudaError_t RmsProp(cudaStream_t stream, const UpdateTable& table, const RmsPropFactors& factors);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_RMSPROP_UPDATE_H_
