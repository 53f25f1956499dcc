#include "stage/backends/cpu/column_sums.h"

#include <algorithm>

#include "base/errors/check.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/vector/kernels.h"

namespace stagecoach::cpu {
namespace {

constexpr int64_t kSumColumns = 128;  // of one operand, so more of them

}  // namespace

void SumColumns(CpuBackend& backend, std::span<const Tensor> operands, int64_t width, int64_t sums,
                float* result, ColumnBody body) {
  CHECK(!operands.empty() && operands.size() <= kSumOperands) << operands.size() << " operands";
  if (width == 0) return;
  constexpr int64_t kArea = kSumRows * kBlockColumns;
  const int64_t rows = operands[0].elements() / width;
  const auto areas = static_cast<int64_t>(operands.size());
  const bool narrow = IsBfloat16(operands[0]);
  const int64_t floats = kBlockColumns + (narrow ? areas * kArea : 0);
  const int rooms = backend.ReserveRooms(floats * static_cast<int64_t>(sizeof(float)));
  if (rooms == 0) return;
  backend.ForEachBlock(
      rooms, sums, kBlockColumns, [&](int64_t column, int64_t columns, int worker) {
        float* const total = backend.WorkerScratch(worker);
        float* const room = total + kBlockColumns;
        std::fill_n(total, kBlockColumns, 0.0f);
        const float* at[kSumOperands];
        for (int64_t row = 0; row < rows; row += kSumRows) {
          const int64_t some = std::min(kSumRows, rows - row), start = row * width + column;
          for (int64_t i = 0; i < areas; ++i) {
            const Tensor& operand = operands[static_cast<size_t>(i)];
            at[i] = narrow ? room + i * kArea : operand.data<float>() + start;
            if (narrow) {
              WidenRows(operand.data<Bfloat16>() + start, width, room + i * kArea, some, columns);
            }
          }
          body({at, narrow ? columns : width, row, some, column, columns, total});
        }
        AddTo(total, result + column, columns);
      });
}

// BF16 columns are widened kSumRows rows at a time, which keeps the order of additions, hence the
// float32 bits.
void AddColumnSums(CpuBackend& backend, const Tensor& tensor, const Tensor& result) {
  const int64_t rows = tensor.shape()[0], columns = tensor.shape()[1];
  float* sums = result.data<float>();
  if (!IsBfloat16(tensor)) {
    const float* x = tensor.data<float>();
    backend.ForEachBlock(columns, kSumColumns, [&](int64_t first, int64_t count, int) {
      ColumnSums(x + first, sums + first, rows, columns, count);
    });
    return;
  }
  constexpr int64_t kArea = kSumRows * kSumColumns;
  const int rooms =
      backend.ReserveRooms((kArea + kSumColumns) * static_cast<int64_t>(sizeof(float)));
  if (rooms == 0) return;
  const Bfloat16* x = tensor.data<Bfloat16>();
  backend.ForEachBlock(rooms, columns, kSumColumns, [&](int64_t first, int64_t count, int worker) {
    float *wide = backend.WorkerScratch(worker), *total = wide + kArea;
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
