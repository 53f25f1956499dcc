// Cross entropy as an operation, on the card (operations/losses/cross_entropy.h). T: float or Bf16.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_LOSSES_CROSS_ENTROPY_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_LOSSES_CROSS_ENTROPY_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

inline constexpr int64_t kCountsOfAClass = 3;

struct LossRows {
  int64_t rows, classes;
  double smoothing;
  int64_t ignored;
  bool accuracy;
  int64_t top;
  int sums;  // 2 to 4
  bool counts_classes;
  int64_t stride;  // from one row of logits, or of d_logits, to the next
};
// Bytes of scratch.
inline size_t LossScratch(const LossRows& shape) {
  return static_cast<size_t>(shape.rows) * (static_cast<size_t>(shape.sums) * sizeof(double) +
                                            (shape.counts_classes ? sizeof(int32_t) : 0));
}
// weights: one a row, or null. scale: one number. d_logits may be null or logits. sums: shape.sums
// numbers, then the counts of classes if they are asked for.
template <typename T>
cudaError_t CrossEntropyLoss(cudaStream_t stream, const LossRows& shape, const T* logits,
                             const int32_t* targets, const float* weights, const float* scale,
                             T* d_logits, double* sums, double* scratch);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_LOSSES_CROSS_ENTROPY_H_
