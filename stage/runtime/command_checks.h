// Command checks: whether a command fits the loaded cell, by its incarnation and its step.
// Threads:   executor thread; they change nothing.
// Errors:    ABORTED: the cell has ended, or another incarnation is loaded. FAILED_PRECONDITION:
//            the step is not the next one. INVALID_ARGUMENT: the job keeps no averages.
#ifndef STAGECOACH_STAGE_RUNTIME_COMMAND_CHECKS_H_
#define STAGECOACH_STAGE_RUNTIME_COMMAND_CHECKS_H_

#include "absl/status/status.h"
#include "stage/runtime/loaded_cells.h"

namespace stagecoach {

// loaded: null if nothing is. A Load with the fence and stage of the loaded cell repeats its Load.
absl::Status CheckLoad(const LoadCommand& command, const LoadedCells* loaded);
// The fence is of the loaded incarnation, and the cell goes on.
absl::Status CheckFence(const Fence& fence, const LoadedCells* loaded);
// Call these after CheckFence.
absl::Status CheckRun(const RunCommand& command, const LoadedCells& loaded);
absl::Status CheckShard(const WriteShardCommand& command, const LoadedCells& loaded);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_RUNTIME_COMMAND_CHECKS_H_
