// A window that moves over images [height, width, channels] (operations/images/window.h), as
// kernels take it. Plain numbers: nvcc compiles it too.
// Units: elements; images are row-major, one sample after the other.
#ifndef STAGECOACH_STAGE_BACKENDS_WINDOW_SHAPE_H_
#define STAGECOACH_STAGE_BACKENDS_WINDOW_SHAPE_H_

#include <cstdint>

namespace stagecoach {

struct WindowShape {
  int64_t samples, height, width, channels;  // of the images
  int64_t places_height, places_width;       // numbers of places of the window
  int64_t size_height, size_width;
  int64_t stride_height, stride_width, padding_height, padding_width;
  int64_t dilation_height, dilation_width;
};

// A convolution (operations/images/convolution.h): the window's channels are the input channels.
struct ConvolutionShape {
  WindowShape window;
  int64_t out, groups;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_WINDOW_SHAPE_H_
