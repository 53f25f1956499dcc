// Products of linear maps in float32. oneDNN computes fixed blocks of rows; the caller's next step
// runs on each block while it is in the cache.
// Threads: the back end's.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_PRODUCTS_FLOAT32_PRODUCTS_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_PRODUCTS_FLOAT32_PRODUCTS_H_

#include <cstdint>

#include "stage/backends/cpu/cpu_backend.h"
#include "stage/backends/cpu/primitives/matmul.h"

namespace stagecoach::cpu {

// c[rows, n] = a[rows, k] b[k, n] + bias; b is read with `strides`.
struct RowProduct {
  int64_t rows, k, n;
  const float* a;
  const float* b;
  Strides strides;
  const float* bias;  // may be null
  float* c;
  const Tensor& parameter;  // of which b is the values
};

// Computes blocks of rows; all share b. Then runs `finish` on each block's rows.
void RunRowProduct(CpuBackend& backend, const RowProduct& product, CpuBackend::BlockBody finish);

// d_weight[out, in] += dy[rows, out]^T x[rows, in].
void AddWeightGradientFloat32(CpuBackend& backend, const Tensor& dy, const Tensor& x,
                              const Tensor& d_weight);

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_PRODUCTS_FLOAT32_PRODUCTS_H_
