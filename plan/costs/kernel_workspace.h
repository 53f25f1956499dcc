// Kernel workspace: upper bound of the bytes that one call of an operation takes on a processor
// beside its operands (stage/backends/cpu). It has scratch of products, units of attention, and
// rows widened from bfloat16. Convolutions: host_memory.h.
//   The sizes of attention, of widened operands and of tables are exact. Products:
//   product_scratch.h.
// Units:     bytes; sizes beyond 64 bits come out as the largest number.
// Threads:   pure functions.
#ifndef STAGECOACH_PLAN_COSTS_KERNEL_WORKSPACE_H_
#define STAGECOACH_PLAN_COSTS_KERNEL_WORKSPACE_H_

#include <cstdint>

#include "network/network.h"
#include "plan/costs/spare_memory.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

// The back end keeps rooms and the shared piece until a cell ends. Each has the size of its largest
// request. The two requests may come from different calls.
struct KernelWorkspace {
  int64_t room = 0;    // of each thread at work
  int64_t shared = 0;  // of the call
  void Raise(const KernelWorkspace& other);
};

// Workspace of all calls of layers [first, last) and of an update. If the last layer is among them,
// the objective counts too. samples: in the largest micro-batch.
KernelWorkspace KernelWorkspaceOf(const Network& network, int first, int last, int64_t samples,
                                  const HostProfile& host);

// Bytes of tensors that cell and optimizer keep beside parameters and activations: norms, factors
// and sums of the loss. Allocations come in whole 64 bytes, and the difference counts too.
int64_t SmallTensorBytes(const Network& network, int first, int last, int64_t micro_batches,
                         const OptimizerSpec& optimizer);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_KERNEL_WORKSPACE_H_
