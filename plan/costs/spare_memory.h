// SpareMemory: memory that a stage's back end may take beyond its job's needs; the forecast decides
// (plan/costs/host_memory.h).
// HostProfile: facts of a processor's back end for forecasts.
#ifndef STAGECOACH_PLAN_COSTS_SPARE_MEMORY_H_
#define STAGECOACH_PLAN_COSTS_SPARE_MEMORY_H_

#include <cstdint>

namespace stagecoach {

struct SpareMemory {
  // Weights of convolutions in the order that kernels read, kept from one micro-batch to the next.
  bool packed_weights = false;
  // The same of linear maps in float32. Only for weights that do not change: they would take as much
  // memory again, and what a step of training saves is little.
  bool packed_products = false;
  // Bytes for the rooms of further threads: a job needs one large room, and runs with that.
  int64_t rooms = 0;
  friend bool operator==(const SpareMemory&, const SpareMemory&) = default;
};

// Every thread has a room of up to this size in any case.
inline constexpr int64_t kSmallRoomBytes = int64_t{16} << 10;

struct HostProfile {
  int threads = 1;  // that compute
  // The library uses AVX-512: products then move operands into scratch, and convolutions may go by
  // Winograd's filtering. Otherwise products take no scratch.
  bool avx512 = true;
  bool native_bfloat16 = false;  // its products have instructions; else operands are widened
  friend bool operator==(const HostProfile&, const HostProfile&) = default;
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_SPARE_MEMORY_H_
