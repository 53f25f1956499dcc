// Adafactor in seven launches: means of rows, of columns, of the rows' means; directions; their and
// the values' squares in two; steps. C++17, as stage/backends/cuda/kernels.h says.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_ADAFACTOR_UPDATE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_ADAFACTOR_UPDATE_H_

#include <cstdint>

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

constexpr int64_t kFactorRows = 32;     // rows that a block averages
constexpr int64_t kFactorColumns = 32;  // columns that a block averages, a lane each

struct AdafactorEntry {
  float *value, *gradient;
  float *m, *row, *column, *square;  // or null
  float* means;                      // of the rows' means, one a matrix
  Bf16* compute;                     // the new value rounded, or null
  const double* norms;               // squared, of value and direction; for the step only
  int64_t n, first_chunk;
  int64_t rows, columns;  // of a matrix
  float weight_decay;
  uint32_t unused;  // 0: entries are compared as bytes
};
struct AdafactorTable {
  const AdafactorEntry* entries;
  int64_t count, chunks;
  bool wide;  // all arrays of a parameter's size lie on multiples of 16 bytes
};
struct AdafactorFactors {
  float gradient_scale, learning_rate, decay, rest, beta1, epsilon1, epsilon2, clip;
  uint32_t scale_by_parameter;
};
// A chunk has kFactorRows rows of a parameter's matrices, kFactorColumns columns of a matrix, or one
// matrix.
cudaError_t FactorRows(cudaStream_t stream, const AdafactorTable& table,
                       const AdafactorFactors& factors);
cudaError_t FactorColumns(cudaStream_t stream, const AdafactorTable& table,
                          const AdafactorFactors& factors);
cudaError_t FactorMeans(cudaStream_t stream, const AdafactorTable& table);
// A chunk has kUpdateChunk elements. Writes the direction over the gradient. The step follows, once
// the norms are known.
cudaError_t AdafactorDirections(cudaStream_t stream, const AdafactorTable& table,
                                const AdafactorFactors& factors);
cudaError_t AdafactorSteps(cudaStream_t stream, const AdafactorTable& table,
                           const AdafactorFactors& factors);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_ADAFACTOR_UPDATE_H_
