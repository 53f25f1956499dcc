// Products of linear maps in BF16. A product is cut into panels of columns. The float32 sums of a
// block of rows by a panel stay in the second cache until bias, residual and GELU are applied. Then
// they are rounded, once. If the processor has BF16 instructions, matrices go to them as they are.
// Otherwise they are widened to float32 in blocks (Bfloat16Products).
// Threads: the back end's.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_PRODUCTS_BFLOAT16_PRODUCTS_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_PRODUCTS_BFLOAT16_PRODUCTS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "base/numbers/bfloat16.h"
#include "stage/backends/cpu/cpu_backend.h"
#include "stage/backends/cpu/primitives/matmul.h"

namespace stagecoach::cpu {

// a[rows, k] b[k, n] + bias; b is read with `strides`.
struct PanelProduct {
  int64_t rows, k, n;
  const Bfloat16* a;
  const Bfloat16* b;
  Strides strides;
  const Bfloat16* bias;  // may be null
};

// The dense sums of rows [row, row + rows) and columns [column, column + columns). `room` holds as
// many floats.
struct Panel {
  int64_t row, rows, column, columns;
  float *sums, *room;

  void Round(float* values, Bfloat16* matrix, int64_t stride) const;
  // As Round, but first adds the same place of `addend`, a matrix with the same stride.
  void RoundSum(float* values, const Bfloat16* addend, Bfloat16* matrix, int64_t stride) const;
};
using PanelBody = absl::FunctionRef<void(const Panel& panel)>;

// `finish` rounds the sums of a panel.
void RunPanelProduct(CpuBackend& backend, const PanelProduct& product, PanelBody finish);

// d_weight[out, in] adds dy[rows, out]^T x[rows, in].
void AddWeightGradientBfloat16(CpuBackend& backend, const Tensor& dy, const Tensor& x,
                               const Tensor& d_weight);

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_PRODUCTS_BFLOAT16_PRODUCTS_H_
