// Float16: IEEE 754's half precision in files of other programs. Only read: every one is a float32.
#ifndef STAGECOACH_BASE_NUMBERS_FLOAT16_H_
#define STAGECOACH_BASE_NUMBERS_FLOAT16_H_

#include <bit>
#include <cstdint>

namespace stagecoach {

struct Float16 {
  uint16_t bits = 0;

  explicit operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
    if (exponent == 0) {  // zero, and numbers below 2^-14
      const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
      return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
    }
    const uint32_t wide = exponent == 0x1fu ? 0xffu : exponent + 112;  // 127 - 15
    return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
  }
};
static_assert(sizeof(Float16) == 2);

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_NUMBERS_FLOAT16_H_
