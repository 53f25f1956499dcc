// Bfloat16: the upper half of a float32. Rounding is to nearest, ties to even; a NaN stays one.
#ifndef STAGECOACH_BASE_NUMBERS_BFLOAT16_H_
#define STAGECOACH_BASE_NUMBERS_BFLOAT16_H_

#include <bit>
#include <cstdint>

namespace stagecoach {

struct Bfloat16 {
  uint16_t bits = 0;

  Bfloat16() = default;
  explicit Bfloat16(float value) {
    const uint32_t wide = std::bit_cast<uint32_t>(value);
    const bool nan = (wide & 0x7fffffffu) > 0x7f800000u;
    bits = nan ? static_cast<uint16_t>((wide >> 16) | 0x40u)
               : static_cast<uint16_t>((wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16);
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};
static_assert(sizeof(Bfloat16) == 2);

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_NUMBERS_BFLOAT16_H_
