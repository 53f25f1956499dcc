// SpareMemory: memory that a stage's back end may take beyond its job's needs; the forecast decides
// (plan/costs/host_memory.h).
#ifndef STAGECOACH_PLAN_COSTS_SPARE_MEMORY_H_
#define STAGECOACH_PLAN_COSTS_SPARE_MEMORY_H_

#include <cstdint>

namespace stagecoach {

struct SpareMemory {
  // Weights of convolutions in the order that kernels read, kept from one micro-batch to the next.
  bool packed_weights = false;
  // The same of linear maps in float32. Only for weights that do not change: packings take as much
  // memory again, and would save a step of training little.
  bool packed_products = false;
  // Bytes for the rooms of further threads: a job needs one large room, and runs with that.
  int64_t rooms = 0;
  friend bool operator==(const SpareMemory&, const SpareMemory&) = default;
};

// Every thread has a room of up to this size in any case.
inline constexpr int64_t kSmallRoomBytes = int64_t{16} << 10;

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_SPARE_MEMORY_H_
