// States: m and v. C++17, as stage/backends/cuda/kernels.h says.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_ADAMW_UPDATE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_ADAMW_UPDATE_H_

#include "stage/backends/cuda/kernels/updates/update_table.h"

namespace stagecoach::cuda {

struct AdamWFactors {
  float gradient_scale, learning_rate, beta1, beta2, epsilon, correction1, correction2;
};
cudaError_t AdamW(cudaStream_t stream, const UpdateTable& table, const AdamWFactors& factors);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_ADAMW_UPDATE_H_
