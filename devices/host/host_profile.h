// HostProfile: facts about a processor's back end, for descriptions of its calls.
#ifndef STAGECOACH_DEVICES_HOST_HOST_PROFILE_H_
#define STAGECOACH_DEVICES_HOST_HOST_PROFILE_H_

#include <cstdint>

namespace stagecoach {

struct HostProfile {
  int threads = 1;  // that compute
  // The library uses AVX-512: products then move operands into scratch, and convolutions may go by
  // Winograd's filtering. Otherwise products take no scratch.
  bool avx512 = true;
  bool native_bfloat16 = false;  // its products have instructions; else operands are widened
  friend bool operator==(const HostProfile&, const HostProfile&) = default;
};

// Fewer rows of a product do not pay for packing its weight.
inline constexpr int64_t kRowsToPack = 64;

}  // namespace stagecoach

#endif  // STAGECOACH_DEVICES_HOST_HOST_PROFILE_H_
