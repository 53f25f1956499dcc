#include "stage/backends/cuda/device_math.h"

#include "base/numbers/random.h"
#include "gtest/gtest.h"
#include "stage/backends/reference/gelu.h"

namespace stagecoach::cuda {
namespace {

PhiloxStream StreamOf(const RandomStream& stream) {
  const PhiloxKey key = SeedKey(stream.seed);
  const PhiloxCounter counter = stream.Block(0);
  return {key[0], key[1], counter[1], counter[2], counter[3]};
}

TEST(DeviceMath, PhiloxHasTheBitsOfTheHost) {
  const RandomStream stream = {.seed = 0xfedcba9876543210,
                               .step = 0xffffffff,
                               .micro_batch = 7,
                               .layer = 65535,
                               .operation = 3};
  const PhiloxStream device = StreamOf(stream);
  PhiloxReader reader(device);
  // Element 2^34 comes back to block 0: the counter's word has 32 bits on both sides.
  for (const uint64_t first :
       {uint64_t{0}, uint64_t{3}, uint64_t{1} << 33, uint64_t{1} << 34, (uint64_t{1} << 34) - 5}) {
    for (uint64_t i = first; i < first + 40; ++i) {
      ASSERT_EQ(reader.Bits(i), RandomBits(stream, i)) << i;
    }
  }
}

TEST(DeviceMath, GeluAndItsDerivativeAreTheReferences) {
  for (double x = -12.0; x <= 12.0; x += 0.0137) {
    const float value = static_cast<float>(x);
    const double scale = std::max(1.0, std::abs(x));
    ASSERT_NEAR(GeluTanh(value), stagecoach::Gelu(value), 3e-7 * scale) << x;
    ASSERT_NEAR(GeluTanhDerivative(value), stagecoach::GeluDerivative(value), 1e-6) << x;
  }
}

TEST(DeviceMath, GeluOfHugeArgumentsIsFinite) {
  for (const float x : {1e6f, 1e15f, 3e38f}) {
    EXPECT_EQ(GeluTanh(x), x);
    EXPECT_EQ(GeluTanh(-x), 0.0f);
    EXPECT_EQ(GeluTanhDerivative(x), 1.0f);
    EXPECT_EQ(GeluTanhDerivative(-x), 0.0f);
  }
  EXPECT_TRUE(std::isnan(GeluTanh(NAN)));
  EXPECT_TRUE(std::isnan(GeluTanhDerivative(NAN)));
}

}  // namespace
}  // namespace stagecoach::cuda
