// The loops of rms_norm, for norms that go by rows of something else too.
// Threads: pure functions of their arguments.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_KERNELS_RMS_NORM_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_KERNELS_RMS_NORM_H_

#include <cstdint>

#include "stage/backends/cpu/column_sums.h"

namespace stagecoach::cpu {

void RmsNormRows(const float* x, const float* weight, float epsilon, float* y, float* rstd,
                 int64_t rows, int64_t width);
// residual may be null or dx.
void RmsNormGradientRows(const float* dy, const float* x, const float* weight, const float* rstd,
                         const float* residual, float* dx, int64_t rows, int64_t width);
// The block's operands are dy and x. total adds dy * x * rstd, with
// rstd[row * stride + column / group].
void RmsNormGradientColumns(const ColumnBlock& block, const float* rstd, int64_t stride,
                            int64_t group);

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_KERNELS_RMS_NORM_H_
