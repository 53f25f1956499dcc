// SpareMemory: what a stage's back end may take beyond what its job needs; the forecast decides
// (plan/costs/host_memory.h).
// HostProfile: what a forecast must know of a processor's back end.
#ifndef STAGECOACH_PLAN_COSTS_SPARE_MEMORY_H_
#define STAGECOACH_PLAN_COSTS_SPARE_MEMORY_H_

#include <cstdint>

namespace stagecoach {

struct SpareMemory {
  // Weights of convolutions in the order that kernels read, kept from one micro-batch to the next.
  bool packed_weights = false;
  // Bytes for the rooms of further threads: a job needs one large room, and runs with that.
  int64_t rooms = 0;
  friend bool operator==(const SpareMemory&, const SpareMemory&) = default;
};

// A room of at most so much is every thread's in any case.
inline constexpr int64_t kSmallRoomBytes = int64_t{16} << 10;

struct HostProfile {
  int threads = 1;  // that compute
  // Of the library: then products move operands into its scratch and convolutions may go by
  // Winograd's filtering; below, products take no scratch.
  bool avx512 = true;
  bool native_bfloat16 = false;  // its products have instructions; else operands are widened
  friend bool operator==(const HostProfile&, const HostProfile&) = default;
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_SPARE_MEMORY_H_
