// The gradients of a norm over rows, layer norm or RMS norm: of the input, of the weights, or both
// in one pass.
// Units and shapes: dy, x, dx, residual [rows, width]; mean, rstd [rows]; weights and their
//            gradients [width].
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_NORM_BACKWARD_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_NORM_BACKWARD_H_

#include <cstdint>

namespace stagecoach::cuda {

enum class NormPart { kBoth, kInput, kWeight };

// Unused fields may be null: for kWeight weight and dx, for kInput the weights' gradients. An RMS
// norm uses neither mean nor d_bias.
template <typename T>
struct NormGradients {
  int64_t rows = 0, width = 0;
  const T *dy = nullptr, *x = nullptr;
  const float *weight = nullptr, *mean = nullptr, *rstd = nullptr;
  const T* residual = nullptr;  // added to dx before it is rounded; may be null
  T* dx = nullptr;
  float *d_weight = nullptr, *d_bias = nullptr;  // added to
};

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_NORM_BACKWARD_H_
