// SpareMemory: what a stage's back end may take beyond what its job needs; the forecast decides (plan/costs/host_memory.h).
#ifndef STAGECOACH_PLAN_COSTS_SPARE_MEMORY_H_
#define STAGECOACH_PLAN_COSTS_SPARE_MEMORY_H_

#include <cstdint>

namespace stagecoach {

struct SpareMemory {
  // Weights of convolutions in the order that kernels read, kept from one micro-batch to the next.
  bool packed_weights = false;
  // Bytes for rooms of further threads: a plan counts one large room, as it does not know the threads.
  int64_t rooms = 0;
  friend bool operator==(const SpareMemory&, const SpareMemory&) = default;
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_SPARE_MEMORY_H_
