#include "base/numbers/low_rank.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/numbers/random.h"

namespace stagecoach {
namespace {

std::vector<float> Numbers(size_t count, uint64_t seed) {
  std::vector<float> numbers;
  for (size_t i = 0; i < count; ++i) numbers.push_back(RandomNormal({.seed = seed}, i));
  return numbers;
}

// Columns behind the last whole block too.
TEST(LowRank, IsTheSumThatPlainLoopsGive) {
  constexpr size_t kRows = 5, kRank = 3;
  constexpr double kScale = 1.5;
  for (const size_t columns : {1u, 7u, 256u, 519u}) {
    const std::vector<float> a = Numbers(kRank * columns, 1), b = Numbers(kRows * kRank, 2);
    std::vector<float> weight = Numbers(kRows * columns, 3), expected = weight;
    for (size_t i = 0; i < kRows; ++i) {
      for (size_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (size_t k = 0; k < kRank; ++k) sum += double{b[i * kRank + k]} * a[k * columns + j];
        expected[i * columns + j] = static_cast<float>(expected[i * columns + j] + kScale * sum);
      }
    }
    AddLowRank(a, b, kRank, kScale, weight);
    EXPECT_EQ(weight, expected) << columns << " columns";
  }
}

}  // namespace
}  // namespace stagecoach
