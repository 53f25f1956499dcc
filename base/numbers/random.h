// Philox4x32-10: counter-based random numbers (Salmon et al., SC'11, "Parallel random numbers: as
// easy as 1, 2, 3"). The value is a pure function of key and counter. So a resume needs no saved
// state, and a recomputed forward pass draws the same mask.
//
// Key and counter of a job (docs/formats.md, "Random numbers"):
//   key     = the job's seed, low and high word
//   counter = (element / 4, layer << 16 | operation, micro_batch, step)
#ifndef STAGECOACH_BASE_NUMBERS_RANDOM_H_
#define STAGECOACH_BASE_NUMBERS_RANDOM_H_

#include <array>
#include <cstdint>

namespace stagecoach {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

PhiloxCounter Philox4x32(PhiloxCounter counter, PhiloxKey key);

inline PhiloxKey SeedKey(uint64_t seed) {
  return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
}

// Names one stream of random numbers: everything but the element.
struct RandomStream {
  uint64_t seed = 0;
  uint32_t step = 0;
  uint32_t micro_batch = 0;
  uint32_t layer = 0;      // < 2^16
  uint32_t operation = 0;  // < 2^16, unique within the layer

  PhiloxCounter Block(uint32_t block) const {
    return {block, layer << 16 | operation, micro_batch, step};
  }
  friend bool operator==(const RandomStream&, const RandomStream&) = default;
};

// 32 random bits of element i: word i % 4 of block i / 4.
uint32_t RandomBits(const RandomStream& stream, uint64_t element);

// Dropout rule of every back end, with threshold = floor(rate * 2^32). Element i is kept if and
// only if its 32 bits are >= threshold. A kept element is scaled by 1 / (1 - rate), computed in
// float.
inline uint32_t DropoutThreshold(double rate) { return static_cast<uint32_t>(rate * 4294967296.0); }

// Standard normal of element i by Box-Muller in double precision from words of block i / 2, rounded
// to float. Used for initial weights only, always on the host.
float RandomNormal(const RandomStream& stream, uint64_t element);

// A permutation of [0, size) keyed by (seed, epoch): a 4-round Feistel network with cycle walking.
// O(1) per index and no state, so resuming at any step needs nothing but the step.
uint64_t PermuteIndex(uint64_t seed, uint64_t epoch, uint64_t size, uint64_t index);

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_NUMBERS_RANDOM_H_
