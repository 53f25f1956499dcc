// The table of an update that has up to two states of the parameter's shape. C++17, as stage/backends/cuda/kernels.h says.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_UPDATE_TABLE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_UPDATE_TABLE_H_

#include <cstdint>

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

struct UpdateEntry {
  float* value;
  const float* gradient;
  float *first, *second;  // states, or null
  Bf16* compute;          // the new value rounded, or null
  int64_t n, first_chunk;
  float weight_decay;
  uint32_t unused;  // 0: entries are compared as bytes
};
struct UpdateTable {
  const UpdateEntry* entries;
  int64_t count, chunks;  // chunks of kUpdateChunk elements
  bool wide;              // all arrays lie on multiples of 16 bytes
};

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_UPDATE_TABLE_H_
