// Small tensors: norms, factors and sums of the loss, and what allocations in whole lines waste.
// Units:     bytes; sizes beyond 64 bits come out as the largest number.
// Threads:   pure functions.
#ifndef STAGECOACH_PLAN_COSTS_SMALL_TENSORS_H_
#define STAGECOACH_PLAN_COSTS_SMALL_TENSORS_H_

#include <cstdint>

#include "network/network.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

// Bytes of tensors that cell and optimizer keep beside parameters and activations: norms, factors
// and sums of the loss. Allocations come in whole 64 bytes, and the difference counts too.
int64_t SmallTensorBytes(const Network& network, int first, int last, int64_t micro_batches,
                         const OptimizerSpec& optimizer);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_SMALL_TENSORS_H_
