// The shared tables of angles in a card's memory: one copy for all kernels of a back end.
// Ownership: shared; a copy is freed with its last kernel.
// Threads:   any.
// Errors:    those of the allocator, and of the copy.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ROTARY_TABLES_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ROTARY_TABLES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "stage/backends/cuda/kernel_backend.h"
#include "stage/backends/shared_rotary_tables.h"

namespace stagecoach::cuda {

struct DeviceTables {
  std::shared_ptr<const RotaryTables> host;
  Tensor cosines, sines;  // float32
};
absl::StatusOr<std::shared_ptr<const DeviceTables>> TablesOn(
    KernelBackend& backend, std::shared_ptr<const RotaryTables> host);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_ROTARY_TABLES_H_
