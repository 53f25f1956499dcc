#include "base/numbers/float16.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"

namespace stagecoach {
namespace {

// By the definition: (-1)^sign * 2^(exponent - 15) * (1 + fraction / 1024), without the 1 where the
// exponent is 0.
double HalfValue(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(Float16, EveryNumberIsAFloat) {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float wide = static_cast<float>(Float16{half});
    if (((half >> 10) & 31) == 31) {
      EXPECT_EQ(std::isnan(wide), (half & 1023) != 0) << bits;
      EXPECT_EQ(std::isinf(wide), (half & 1023) == 0) << bits;
    } else {
      ASSERT_EQ(wide, HalfValue(half)) << bits;
    }
    EXPECT_EQ(std::signbit(wide), (half & 0x8000) != 0) << bits;
  }
}

}  // namespace
}  // namespace stagecoach
