// PrepareBound: a kernel for a call whose types may have named extents. It prepares the call again
// for each lengths that micro-batches come with, and keeps the result. A job has few of them.
// Ownership, threads: as Kernel.
// Errors:  those of Backend::Prepare, for the largest lengths. If it fails for others, the back end
//          notes the error (Backend::NoteUnprepared) and the call computes nothing.
#ifndef STAGECOACH_STAGE_BACKENDS_BOUND_KERNEL_H_
#define STAGECOACH_STAGE_BACKENDS_BOUND_KERNEL_H_

#include "absl/status/statusor.h"
#include "stage/backends/backend.h"

namespace stagecoach {

absl::StatusOr<Kernel> PrepareBound(Backend& backend, const Call& call, const CallTypes& types,
                                    DType activation);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_BOUND_KERNEL_H_
