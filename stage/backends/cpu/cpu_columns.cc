// Sums over all rows: a task owns a range of columns and walks the rows in order. BF16 columns are
// widened kSumRows rows at a time, which keeps the order of additions, hence the float32 bits.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "stage/backends/cpu/cpu_backend.h"
#include "stage/backends/cpu/float_view.h"

namespace stagecoach::cpu {
namespace {

constexpr int64_t kSumColumns = 128;  // of a bias: one operand, so more of them

}  // namespace

void CpuBackend::AddColumnSums(const Tensor& tensor, const Tensor& result) {
  const int64_t rows = tensor.shape()[0], columns = tensor.shape()[1];
  float* sums = result.data<float>();
  if (!IsBfloat16(tensor)) {
    const float* x = tensor.data<float>();
    ForEachBlock(columns, kSumColumns, [&](int64_t first, int64_t count, int) {
      ColumnSums(x + first, sums + first, rows, columns, count);
    });
    return;
  }
  constexpr int64_t kArea = kSumRows * kSumColumns;
  if (!ReserveWorkers((kArea + kSumColumns) * static_cast<int64_t>(sizeof(float)))) return;
  const Bfloat16* x = tensor.data<Bfloat16>();
  ForEachBlock(columns, kSumColumns, [&](int64_t first, int64_t count, int worker) {
    float *wide = WorkerScratch(worker), *total = wide + kArea;
    std::fill_n(total, kSumColumns, 0.0f);
    for (int64_t r = 0; r < rows; r += kSumRows) {
      const int64_t some = std::min(kSumRows, rows - r);
      WidenRows(x + r * columns + first, columns, wide, some, count);
      ColumnSums(wide, total, some, count, count);
    }
    AddTo(total, sums + first, count);
  });
}

}  // namespace stagecoach::cpu
