// The operands of an average over windows on a card, for own kernels and for a library.
// Units and shapes: images are [samples, height, width, channels], x or dx of
//            operations/images/pool.h, and places [samples, places' height, places' width,
//            channels], y or dy. A mean over the image has one place.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_POOL_OPERANDS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_POOL_OPERANDS_H_

#include <cstdint>

#include "stage/backends/window_shape.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

enum class PoolPass : uint8_t {
  kForward,   // places = averages of the image
  kGradient,  // image = the sum of the places' gradients for each element
};

struct AveragePoolArgs {
  PoolPass pass = PoolPass::kForward;
  WindowShape shape{};  // all samples are in it
  bool count_padding =
      false;  // a sum is divided by the window's size, not by the part in the image
  Tensor image, places;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_POOL_OPERANDS_H_
