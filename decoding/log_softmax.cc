#include "decoding/log_softmax.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace stagecoach {
namespace {

// The compiler vectorizes loops over a fixed number of lanes. Likeliest takes half the time that it
// takes with std::exp.
constexpr size_t kLanes = 8, kBlock = 256;

constexpr float kLeast = -87;  // exp(kLeast) is still a normal number

float Greatest(std::span<const float> values) {
  std::array<float, kLanes> lanes;
  lanes.fill(values.front());
  for (; values.size() >= kLanes; values = values.subspan(kLanes)) {
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = lanes[i] < values[i] ? values[i] : lanes[i];
  }
  for (const float value : values) lanes[0] = std::max(lanes[0], value);
  return *std::max_element(lanes.begin(), lanes.end());
}

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

double SumOfExponentials(std::span<const float> logits, float greatest) {
  std::array<double, kLanes> sums{};
  std::array<float, kBlock> block;
  while (!logits.empty()) {
    const auto part = logits.first(std::min(kBlock, logits.size()));
    logits = logits.subspan(part.size());
    block.fill(kLeast);  // too small to change a sum of 1 or more
    for (size_t i = 0; i < part.size(); ++i) {
      const float less = part[i] - greatest;
      block[i] = less < kLeast ? kLeast : less;
    }
    for (float& value : block) value = Exponential(value);
    for (size_t i = 0; i < kBlock; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += block[i + lane];
    }
  }
  double sum = 0;
  for (const double of_lane : sums) sum += of_lane;
  return sum;
}

}  // namespace

LogSoftmax::LogSoftmax(std::span<const float> logits)
    : logits_(logits),
      greatest_(Greatest(logits)),
      log_sum_(std::log(SumOfExponentials(logits, greatest_))) {}

}  // namespace stagecoach
