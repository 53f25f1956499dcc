// Sums over all rows of matrices of one width, the same for every element type. A task owns a range
// of columns and walks the rows in order, kSumRows at a time. BF16 rows are widened.
// Threads: the back end's.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_COLUMN_SUMS_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_COLUMN_SUMS_H_

#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "stage/backends/cpu/cpu_backend.h"

namespace stagecoach::cpu {

// Columns [column, column + columns) of rows [row, row + rows). columns <= kBlockColumns and rows
// <= kSumRows. body adds to total[c] the sum over these rows.
struct ColumnBlock {
  const float* const* operands;  // each points to the block's first element
  int64_t stride;                // the same for all operands
  int64_t row, rows, column, columns;
  float* total;
};
inline constexpr int64_t kBlockColumns = 64;
inline constexpr int kSumOperands = 4;  // at most
using ColumnBody = absl::FunctionRef<void(const ColumnBlock& block)>;

// result[columns] adds the totals of the first `columns`. Operands are [rows, width], of one
// element type.
void SumColumns(CpuBackend& backend, std::span<const Tensor> operands, int64_t width,
                int64_t columns, float* result, ColumnBody body);

// sums [columns] add the column sums of x [rows, columns].
void AddColumnSums(CpuBackend& backend, const Tensor& x, const Tensor& sums);

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_COLUMN_SUMS_H_
