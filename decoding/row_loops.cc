#include "decoding/row_loops.h"

#include <algorithm>
#include <bit>
#include <limits>

// The loader picks a form when the program starts. Sanitizers are not ready by then.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(STAGECOACH_SANITIZED)
#define STAGECOACH_FOR_EACH_INSTRUCTION_SET \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define STAGECOACH_FOR_EACH_INSTRUCTION_SET
#endif

namespace stagecoach {
namespace {

constexpr size_t kSums = 8;  // 512 bits of doubles
constexpr size_t kBlock = 256;
constexpr float kLeast = -87;  // exp(kLeast) is still a normal number

// exp(x) for kLeast <= x <= 0, the polynomial of Cephes' expf: x = n log(2) + r.
inline float Exponential(float x) {
  constexpr float kRounds =
      0x1.8p23f;  // added to a small number, its last bits are the nearest integer
  const float shifted = x * 1.44269504088896341f + kRounds;
  const float n = shifted - kRounds;
  const float r = x - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) +
                              (std::bit_cast<uint32_t>(shifted) << 23));
}

}  // namespace

// Loops without an early exit: the compiler vectorizes them.
STAGECOACH_FOR_EACH_INSTRUCTION_SET
bool AllFinite(std::span<const float> logits) {
  constexpr uint32_t kExponent = 0x7f800000u;
  uint32_t others = 0;
  for (const float logit : logits) {
    others |= (std::bit_cast<uint32_t>(logit) & kExponent) == kExponent ? 1u : 0u;
  }
  return others == 0;
}

STAGECOACH_FOR_EACH_INSTRUCTION_SET
RowLanes GreatestOfLanes(std::span<const float> logits) {
  RowLanes lanes;
  lanes.fill(-std::numeric_limits<float>::infinity());
  const float* row = logits.data();
  size_t left = logits.size();
  for (; left >= kRowLanes; left -= kRowLanes, row += kRowLanes) {
    for (size_t i = 0; i < kRowLanes; ++i) lanes[i] = lanes[i] < row[i] ? row[i] : lanes[i];
  }
  for (size_t i = 0; i < left; ++i) lanes[i] = lanes[i] < row[i] ? row[i] : lanes[i];
  return lanes;
}

STAGECOACH_FOR_EACH_INSTRUCTION_SET
bool AnyAtLeast(std::span<const float> logits, float bound) {
  uint32_t any = 0;
  for (const float logit : logits) any |= logit >= bound ? 1u : 0u;
  return any != 0;
}

STAGECOACH_FOR_EACH_INSTRUCTION_SET
double SumOfExponentials(std::span<const float> logits, float greatest) {
  std::array<double, kSums> sums{};
  std::array<float, kBlock> block;
  const float* row = logits.data();
  for (size_t left = logits.size(); left > 0;) {
    const size_t part = std::min(kBlock, left);
    if (part < kBlock) block.fill(kLeast);  // too small to change a sum of 1 or more
    for (size_t i = 0; i < part; ++i) {
      const float less = row[i] - greatest;
      block[i] = less < kLeast ? kLeast : less;
    }
    for (float& value : block) value = Exponential(value);
    for (size_t i = 0; i < kBlock; i += kSums) {
      for (size_t lane = 0; lane < kSums; ++lane) sums[lane] += block[i + lane];
    }
    row += part;
    left -= part;
  }
  double sum = 0;
  for (const double of_lane : sums) sum += of_lane;
  return sum;
}

}  // namespace stagecoach
