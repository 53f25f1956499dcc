// convolution: y[i, j, o] = sum over u, v, c of x[i * stride - padding + u * dilation, j ..., c] *
// weight[o, u, v, c] [+ bias[o]], where x is 0 outside of the image. x [height, width, in], weight
// [out, kernel height, kernel width, in / groups]; with groups, output o reads the channels of group
// o / (out / groups) only. y [places, places, out] (operations/window.h).
// Inputs: x, weight [, bias (activation [out])].
//
// convolution_input_gradient: dy, weight -> dx.
// convolution_weight_gradient: dy, x; adds to d_weight and, with bias, to d_bias.
// transposed_convolution: x, weight -> y, what convolution_input_gradient makes of dy and weight: each pixel of x adds its
// product with the window to y, which has the attributes' extents. weight [channels of x, kernel height, kernel width,
// channels of y / groups]. So its input's gradient is a convolution of dy, and its weight's that of one with both swapped.
#ifndef STAGECOACH_OPERATIONS_CONVOLUTION_H_
#define STAGECOACH_OPERATIONS_CONVOLUTION_H_

#include <algorithm>
#include <cstdint>

#include "operations/window.h"

namespace stagecoach {

struct ConvolutionSteps {
  Plane stride{1, 1}, padding{0, 0}, dilation{1, 1};
  int64_t groups = 1;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("stride_height", stride.height, 1);
    visit.Count("stride_width", stride.width, 1);
    visit.Count("padding_height", padding.height, 0);
    visit.Count("padding_width", padding.width, 0);
    visit.Count("dilation_height", dilation.height, 1);
    visit.Count("dilation_width", dilation.width, 1);
    visit.Count("groups", groups, 1);
  }
};

struct ConvolutionAttributes {
  ConvolutionSteps steps;
  bool bias = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    steps.Visit(visit);
    visit.Flag("bias", bias);
  }
};

struct ConvolutionInputGradientAttributes {
  ConvolutionSteps steps;
  Plane image{1, 1};  // of x: with strides its extents do not follow from dy's
  template <typename Visitor>
  void Visit(Visitor& visit) {
    steps.Visit(visit);
    visit.Count("image_height", image.height, 1);
    visit.Count("image_width", image.width, 1);
  }
};

using ConvolutionWeightGradientAttributes = ConvolutionAttributes;

// On a processor a weight's gradient is summed in shares of the samples, which are then added in order: a part of its
// bits, and memory that a plan counts.
inline constexpr int64_t kConvolutionShares = 8;  // at most
inline constexpr int64_t kConvolutionShareSize =
    256;  // places at least: less is not worth a sum of its own

// Of float copies of bfloat16 operands that a thread makes at a time.
inline constexpr int64_t kMostWidenedBytes = int64_t{16} << 20;

// How many samples make a share; the last one has the rest. At least 1.
inline int64_t SamplesOfShare(int64_t samples, int64_t places) {
  const int64_t worth = (kConvolutionShareSize + places - 1) / std::max<int64_t>(places, 1);
  return std::max<int64_t>({(samples + kConvolutionShares - 1) / kConvolutionShares, worth, 1});
}
// How many shares a sample is cut into, by rows of places, where there are fewer samples than shares. At least 1.
inline int64_t SharesOfSample(int64_t samples, int64_t places) {
  return std::max<int64_t>(1, std::min(kConvolutionShares / std::max<int64_t>(samples, 1),
                                       places / kConvolutionShareSize));
}
// All of them, at most.
inline int64_t SharesOfSamples(int64_t samples, int64_t places) {
  const int64_t cut = SharesOfSample(samples, places);
  if (cut > 1) return samples * cut;
  const int64_t each = SamplesOfShare(samples, places);
  return (samples + each - 1) / each;
}

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_CONVOLUTION_H_
