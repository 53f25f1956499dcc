#include "base/numbers/low_rank.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "base/errors/check.h"
#include "base/threads/progress.h"

namespace stagecoach {

void AddLowRank(std::span<const float> a, std::span<const float> b, int64_t rank, double scale,
                std::span<float> weight) {
  CHECK(rank > 0 && !a.empty() && !b.empty());
  const auto depth = static_cast<size_t>(rank);
  const size_t rows = b.size() / depth, columns = a.size() / depth;
  CHECK_EQ(a.size(), depth * columns);
  CHECK_EQ(b.size(), rows * depth);
  CHECK_EQ(weight.size(), rows * columns);
  constexpr size_t kColumns = 256;  // some columns of a stay in the cache, for all rows of b
  std::vector<double> wide(depth * kColumns);
  for (size_t first = 0; first < columns; first += kColumns) {
    const size_t count = std::min(kColumns, columns - first);
    for (size_t k = 0; k < depth; ++k) {
      std::copy_n(&a[k * columns + first], count, &wide[k * kColumns]);
    }
    for (size_t i = 0; i < rows; ++i) {
      std::array<double, kColumns> sum{};
      for (size_t k = 0; k < depth; ++k) {
        const double factor = b[i * depth + k];
        const double* const row = &wide[k * kColumns];
        for (size_t j = 0; j < count; ++j) sum[j] += factor * row[j];
      }
      float* const out = &weight[i * columns + first];
      for (size_t j = 0; j < count; ++j) out[j] = static_cast<float>(out[j] + scale * sum[j]);
    }
    TickProgress();
  }
}

}  // namespace stagecoach
