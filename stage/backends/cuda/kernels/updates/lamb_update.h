// In two launches, with the norms between them. C++17, as stage/backends/cuda/kernels.h says.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_LAMB_UPDATE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_LAMB_UPDATE_H_

#include "stage/backends/cuda/kernels/updates/adamw_update.h"

namespace stagecoach::cuda {

struct LambEntry {
  float *value, *gradient, *m, *v;
  Bf16* compute;        // the new value rounded, or null
  const double* norms;  // squared, of value and direction; for the step only
  int64_t n, first_chunk;
  float weight_decay;
  uint32_t adapt;
};
struct LambTable {
  const LambEntry* entries;
  int64_t count, chunks;  // chunks of kUpdateChunk elements
  bool wide;
};
// Writes the direction over the gradient. The step follows, once the norms are known.
cudaError_t LambDirections(cudaStream_t stream, const LambTable& table,
                           const AdamWFactors& factors);
cudaError_t LambSteps(cudaStream_t stream, const LambTable& table, float learning_rate);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_LAMB_UPDATE_H_
