// Numbers for a trial: eighths, so that sums are exact in any order, and their copies in guarded
// memory.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_TESTING_GUARDED_NUMBERS_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_TESTING_GUARDED_NUMBERS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "stage/backends/cpu/testing/guarded_memory.h"

namespace stagecoach::cpu {

struct Numbers {
  std::vector<float> values;
  explicit Numbers(int64_t count, uint64_t seed = 0) : values(static_cast<size_t>(count)) {
    if (seed == 0) return;  // zeros
    std::minstd_rand random(static_cast<uint32_t>(seed));
    for (float& value : values) value = static_cast<float>(random() % 17) * 0.125f - 1.0f;
  }
  float& operator[](int64_t at) { return values[static_cast<size_t>(at)]; }
  float operator[](int64_t at) const { return values[static_cast<size_t>(at)]; }
  int64_t size() const { return static_cast<int64_t>(values.size()); }
};

// A copy of numbers [first, first + count) with a page without access beside it.
struct GuardedNumbers : GuardedMemory {
  GuardedNumbers(std::string name, const Numbers& numbers, int64_t first, int64_t count,
                 GuardedSide side)
      : GuardedMemory(std::move(name), count * 4, side) {
    std::copy_n(numbers.values.data() + first, count, data());
  }
};

// Empty, or the first number that differs from the expected one.
inline std::string Difference(const float* actual, const float* expected, int64_t count,
                              float tolerance = 0) {
  for (int64_t i = 0; i < count; ++i) {
    if (std::abs(actual[i] - expected[i]) <= tolerance) continue;
    return absl::StrCat("number ", i, " is ", actual[i], ", not ", expected[i]);
  }
  return "";
}

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_TESTING_GUARDED_NUMBERS_H_
