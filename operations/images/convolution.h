// convolution: with x as 0 outside of the image,
//   y[i, j, o] = sum over u, v, c of x[i * stride - padding + u * dilation, j ..., c] *
//                weight[o, u, v, c] [+ bias[o]]
// With groups, output o reads the channels of group o / (out / groups) only.
// Inputs: x [height, width, in]; weight [out, kernel height, kernel width, in / groups]; with
// `bias` also bias (activation [out]). Output: y [places, places, out]
// (operations/images/window.h).
//
// convolution_input_gradient: dy, weight -> dx.
// convolution_weight_gradient: dy, x; adds to d_weight and, with bias, to d_bias.
// transposed_convolution: x, weight -> y, as convolution_input_gradient makes dx of dy and weight.
//   Each pixel of x adds its product with the window to y, which has the attributes' extents. The
//   weight is [channels of x, kernel height, kernel width, channels of y / groups]. So its input's
//   gradient is a convolution of dy. Its weight's gradient is that of a convolution with x and dy
//   swapped.
#ifndef STAGECOACH_OPERATIONS_IMAGES_CONVOLUTION_H_
#define STAGECOACH_OPERATIONS_IMAGES_CONVOLUTION_H_

#include <algorithm>
#include <cstdint>

#include "operations/images/window.h"

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
  Plane image{1, 1};  // x's extents: with strides they do not follow from dy's
  template <typename Visitor>
  void Visit(Visitor& visit) {
    steps.Visit(visit);
    visit.Count("image_height", image.height, 1);
    visit.Count("image_width", image.width, 1);
  }
};

using ConvolutionWeightGradientAttributes = ConvolutionAttributes;

// On a processor a weight's gradient is summed in shares of the samples. The shares are then added
// in order. They decide its bits, and take memory that a plan counts.
inline constexpr int64_t kConvolutionShares = 8;  // at most
inline constexpr int64_t kConvolutionShareSize =
    256;  // places at least: fewer are not worth an own sum

// Bytes of float copies of bfloat16 operands that a thread makes at a time.
inline constexpr int64_t kMostWidenedBytes = int64_t{16} << 20;

// Number of samples of a share; the last one has the rest. At least 1.
inline int64_t SamplesOfShare(int64_t samples, int64_t places) {
  const int64_t worth = (kConvolutionShareSize + places - 1) / std::max<int64_t>(places, 1);
  return std::max<int64_t>({(samples + kConvolutionShares - 1) / kConvolutionShares, worth, 1});
}
// Number of shares of a sample, by rows of places, if there are fewer samples than shares. At least
// 1.
inline int64_t SharesOfSample(int64_t samples, int64_t places) {
  return std::max<int64_t>(1, std::min(kConvolutionShares / std::max<int64_t>(samples, 1),
                                       places / kConvolutionShareSize));
}
// Upper bound of all shares.
inline int64_t SharesOfSamples(int64_t samples, int64_t places) {
  const int64_t cut = SharesOfSample(samples, places);
  if (cut > 1) return samples * cut;
  const int64_t each = SamplesOfShare(samples, places);
  return (samples + each - 1) / each;
}

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_IMAGES_CONVOLUTION_H_
