// convolution of an image (operations/images/convolution.h). Parameters: weight [out, kernel
// height, kernel width, in / groups], bias [out] if bias. Initial weights are normal, by He et al.
// (2015, 1502.01852) for networks with ReLU. Their variance is 2 / (kernel height * kernel width *
// in / groups).
#ifndef STAGECOACH_NETWORK_LAYERS_CONVOLUTION_H_
#define STAGECOACH_NETWORK_LAYERS_CONVOLUTION_H_

#include <cstdint>
#include <vector>

#include "network/limits.h"
#include "operations/attributes.h"
#include "operations/images/window.h"

namespace stagecoach {

struct ConvolutionSpec {
  static constexpr const char* kKind = "convolution";
  int64_t out = 0;  // channels that it gives
  // One number, or height and width.
  std::vector<int64_t> kernel, stride = {}, padding = {}, dilation = {};
  int64_t groups = 1;
  bool bias = true;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("out", out, 1, kMaxWidth);
    visit.Counts("kernel", kernel, 1, kMaxWindow, 2);
    visit.Counts("stride", stride, 1, kMaxExtent, 2);
    visit.Counts("padding", padding, 0, kMaxExtent, 2);
    visit.Counts("dilation", dilation, 1, kMaxExtent, 2);
    visit.Count("groups", groups, 1, kMaxWidth);
    bool no_bias = !bias;  // what a job leaves out is false
    visit.Flag("no_bias", no_bias);
    bias = !no_bias;
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_CONVOLUTION_H_
