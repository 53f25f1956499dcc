// Process memory: the memory that a stage's process takes of its machine or container, if its
// device is a processor. It counts the tensors (StageMemory). It counts two snapshots of the
// stage's own state at most. With K > 1 it counts two of the stage before it (docs/ARCHITECTURE.md,
// "Recovery from memory"). It counts the program, with gRPC's buffers and the memory that the
// library keeps for each thread.
//   If the stage has a limit (--memory-limit-bytes, --memory-per-stage), tensors stay below the
//   forecast. Without one the allocator keeps what was freed, and the process takes more. Not
//   counted: the index of the data, some 100 bytes a file.
// Units:     bytes; sizes beyond 64 bits come out as the largest number.
#ifndef STAGECOACH_PLAN_COSTS_PROCESS_MEMORY_H_
#define STAGECOACH_PLAN_COSTS_PROCESS_MEMORY_H_

#include <cstdint>

#include "plan/costs/cost_model.h"

namespace stagecoach {

// before: memory of the stage whose snapshots this one keeps; null with K = 1.
int64_t ProcessBytes(const StageMemory& own, const StageMemory* before, int threads);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_PROCESS_MEMORY_H_
