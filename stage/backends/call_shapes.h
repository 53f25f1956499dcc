// The windows of convolutions and pools from their attributes and types.
#ifndef STAGECOACH_STAGE_BACKENDS_CALL_SHAPES_H_
#define STAGECOACH_STAGE_BACKENDS_CALL_SHAPES_H_

#include "operations/images/convolution.h"
#include "operations/images/pool.h"
#include "operations/operation.h"
#include "stage/backends/window_shape.h"

namespace stagecoach {

// `image` is x or dx, `places` y or dy. The call's number of samples is not set here.
inline ConvolutionShape ShapeOfConvolution(const ConvolutionSteps& steps, const ValueType& image,
                                           const ValueType& weight, const ValueType& places) {
  return {{0, image.shape[0], image.shape[1], image.shape[2], places.shape[0], places.shape[1],
           weight.shape[1], weight.shape[2], steps.stride.height, steps.stride.width,
           steps.padding.height, steps.padding.width, steps.dilation.height, steps.dilation.width},
          places.shape[2],
          steps.groups};
}

// Shapes of the three calls: forward, input gradient, weight gradient.
inline ConvolutionShape ForwardShape(const ConvolutionSteps& steps, const CallTypes& types) {
  return ShapeOfConvolution(steps, types.inputs[0], types.inputs[1], types.outputs[0]);
}
inline ConvolutionShape InputGradientShape(const ConvolutionSteps& steps, const CallTypes& types) {
  return ShapeOfConvolution(steps, types.outputs[0], types.inputs[1], types.inputs[0]);
}
inline ConvolutionShape WeightGradientShape(const ConvolutionSteps& steps, const CallTypes& types) {
  return ShapeOfConvolution(steps, types.inputs[1], types.adds[0], types.inputs[0]);
}

// Shape of a pool: `image` is x or dx, `places` y or dy. The number of samples is not set here.
inline WindowShape PoolShape(const PoolSteps& steps, const ValueType& image,
                             const ValueType& places) {
  return {.samples = 0,
          .height = image.shape[0],
          .width = image.shape[1],
          .channels = image.shape[2],
          .places_height = places.shape[0],
          .places_width = places.shape[1],
          .size_height = steps.window.height,
          .size_width = steps.window.width,
          .stride_height = steps.stride.height,
          .stride_width = steps.stride.width,
          .padding_height = steps.padding.height,
          .padding_width = steps.padding.width,
          .dilation_height = 1,
          .dilation_width = 1};
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_CALL_SHAPES_H_
