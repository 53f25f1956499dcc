#include "base/numbers/random.h"

#include <cmath>
#include <numbers>

#include "base/errors/check.h"

namespace stagecoach {
namespace {

PhiloxCounter Round(const PhiloxCounter& c, const PhiloxKey& k) {
  const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
  const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
  return {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
          static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
}

// In (0, 1): never 0, so that the logarithm is finite.
double UnitInterval(uint32_t high, uint32_t low) {
  const uint64_t bits = (uint64_t{high} << 32 | low) >> 11;
  return (static_cast<double>(bits) + 0.5) * 0x1.0p-53;
}

}  // namespace

PhiloxCounter Philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    counter = Round(counter, key);
  }
  return counter;
}

uint32_t RandomBits(const RandomStream& stream, uint64_t element) {
  return Philox4x32(stream.Block(static_cast<uint32_t>(element / 4)),
                    SeedKey(stream.seed))[element % 4];
}

float RandomNormal(const RandomStream& stream, uint64_t element) {
  const PhiloxCounter words =
      Philox4x32(stream.Block(static_cast<uint32_t>(element / 2)), SeedKey(stream.seed));
  const double radius = std::sqrt(-2.0 * std::log(UnitInterval(words[0], words[1])));
  const double angle = 2.0 * std::numbers::pi * UnitInterval(words[2], words[3]);
  return static_cast<float>(radius * (element % 2 == 0 ? std::cos(angle) : std::sin(angle)));
}

uint64_t PermuteIndex(uint64_t seed, uint64_t epoch, uint64_t size, uint64_t index) {
  CHECK_LT(index, size);
  int half_bits = 1;
  while ((uint64_t{1} << (2 * half_bits)) < size) ++half_bits;
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  uint64_t value = index;
  do {  // cycle walking: at most about 4 rounds trips, since 4^half_bits < 4 * size
    uint64_t left = value >> half_bits;
    uint64_t right = value & mask;
    for (uint32_t round = 0; round < 4; ++round) {
      const PhiloxCounter counter = {
          static_cast<uint32_t>(right), static_cast<uint32_t>(right >> 32) ^ (round << 24),
          static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32) ^ 0x5eed0000};
      const uint64_t mixed = left ^ (Philox4x32(counter, SeedKey(seed))[0] & mask);
      left = right;
      right = mixed;
    }
    value = left << half_bits | right;
  } while (value >= size);
  return value;
}

}  // namespace stagecoach
