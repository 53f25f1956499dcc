// The operands of a convolution on a card, for own kernels and for a library.
// Units and shapes: images and places are [samples, height, width, channels]. They are x or dx and
//            y or dy of operations/images/convolution.h. The weight is [out, window height, window
//            width, channels / groups].
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CONVOLUTION_OPERANDS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CONVOLUTION_OPERANDS_H_

#include <cstdint>
#include <functional>

#include "base/numbers/precision.h"
#include "stage/backends/window_shape.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

enum class ConvolutionPass : uint8_t {
  kForward,         // places = image and weight [and bias]
  kInputGradient,   // image = places and weight; a transposed convolution too
  kWeightGradient,  // weight adds places and image; always float32
};

struct ConvolutionArgs {
  ConvolutionPass pass = ConvolutionPass::kForward;
  ConvolutionShape shape{};                   // all samples are in it
  Precision precision = Precision::kFloat32;  // of the products
  Tensor image, weight, places;
  Tensor bias = {};  // [out]; only for kForward; may be empty
};

// Own kernels around a library's weight gradient, queued on the same stream. The functions
// themselves note their errors.
struct AroundConvolution {
  // wide[n] = the numbers of `narrow`, BF16, from element `first` on.
  std::function<void(const Tensor& narrow, int64_t first, float* wide, int64_t n)> widen;
  // gradient adds sums, as many as it has elements.
  std::function<void(const float* sums, const Tensor& gradient)> add;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CONVOLUTION_OPERANDS_H_
