// As the sum is written (operations/images/convolution.h), in double.
#include "operations/images/convolution.h"

#include <vector>

#include "base/threads/progress.h"
#include "stage/backends/call_shapes.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

// Calls body(x element, y element, weight element) for every product of a sample: the first channel
// of x's pixel, the first output of y's, and the tap.
template <typename Body>
void ForEachTap(const ConvolutionShape& s, int64_t sample, Body body) {
  const WindowShape& w = s.window;
  for (int64_t i = 0; i < w.places_height; ++i) {
    TickProgress();
    for (int64_t j = 0; j < w.places_width; ++j) {
      for (int64_t u = 0; u < w.size_height; ++u) {
        for (int64_t v = 0; v < w.size_width; ++v) {
          const int64_t row = i * w.stride_height - w.padding_height + u * w.dilation_height;
          const int64_t column = j * w.stride_width - w.padding_width + v * w.dilation_width;
          if (row < 0 || row >= w.height || column < 0 || column >= w.width) continue;
          const int64_t x = ((sample * w.height + row) * w.width + column) * w.channels;
          const int64_t y = ((sample * w.places_height + i) * w.places_width + j) * s.out;
          body(x, y, u * w.size_width + v);
        }
      }
    }
  }
}

// Calls body(channel of x, output, element of the weight) for all that meet at a tap.
template <typename Body>
void ForEachProduct(const ConvolutionShape& s, int64_t tap, Body body) {
  const int64_t in = s.window.channels / s.groups,
                taps = s.window.size_height * s.window.size_width;
  for (int64_t o = 0; o < s.out; ++o) {
    const int64_t first = o / (s.out / s.groups) * in;
    for (int64_t c = 0; c < in; ++c) body(first + c, o, (o * taps + tap) * in + c);
  }
}

absl::StatusOr<Kernel> Forward(ReferenceBackend&, const Call& call, const CallTypes& types, DType) {
  const auto attributes = AttributesOf<ConvolutionAttributes>(call);
  return Kernel([s = ForwardShape(attributes.steps, types), bias = attributes.bias](
                    const KernelContext& context, const KernelArguments& a) {
    const float *x = a.inputs[0].data<float>(), *weight = a.inputs[1].data<float>();
    std::vector<double> sums(a.outputs[0].elements(), 0.0);
    for (int64_t n = 0; n < context.run.sequences; ++n) {
      ForEachTap(s, n, [&](int64_t at_x, int64_t at_y, int64_t tap) {
        ForEachProduct(s, tap, [&](int64_t c, int64_t o, int64_t w) {
          sums[at_y + o] += double{x[at_x + c]} * weight[w];
        });
      });
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      const double added = bias ? a.inputs[2].data<float>()[i % s.out] : 0.0f;
      a.outputs[0].data<float>()[i] = static_cast<float>(sums[i] + added);
    }
  });
}

absl::StatusOr<Kernel> InputGradient(ReferenceBackend&, const Call& call, const CallTypes& types,
                                     DType) {
  const auto attributes = AttributesOf<ConvolutionInputGradientAttributes>(call);
  return Kernel([s = InputGradientShape(attributes.steps, types)](const KernelContext& context,
                                                                  const KernelArguments& a) {
    const float *dy = a.inputs[0].data<float>(), *weight = a.inputs[1].data<float>();
    std::vector<double> sums(a.outputs[0].elements(), 0.0);
    for (int64_t n = 0; n < context.run.sequences; ++n) {
      ForEachTap(s, n, [&](int64_t at_x, int64_t at_y, int64_t tap) {
        ForEachProduct(s, tap, [&](int64_t c, int64_t o, int64_t w) {
          sums[at_x + c] += double{dy[at_y + o]} * weight[w];
        });
      });
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      a.outputs[0].data<float>()[i] = static_cast<float>(sums[i]);
    }
  });
}

absl::StatusOr<Kernel> WeightGradient(ReferenceBackend&, const Call& call, const CallTypes& types,
                                      DType) {
  const auto attributes = AttributesOf<ConvolutionWeightGradientAttributes>(call);
  return Kernel([s = WeightGradientShape(attributes.steps, types), bias = attributes.bias](
                    const KernelContext& context, const KernelArguments& a) {
    const float *dy = a.inputs[0].data<float>(), *x = a.inputs[1].data<float>();
    std::vector<double> sums(a.adds[0].elements(), 0.0), bias_sums(s.out, 0.0);
    for (int64_t n = 0; n < context.run.sequences; ++n) {
      ForEachTap(s, n, [&](int64_t at_x, int64_t at_y, int64_t tap) {
        ForEachProduct(s, tap, [&](int64_t c, int64_t o, int64_t w) {
          sums[w] += double{dy[at_y + o]} * x[at_x + c];
        });
      });
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      a.adds[0].data<float>()[i] += static_cast<float>(sums[i]);
    }
    if (!bias) return;
    for (int64_t i = 0; i < a.inputs[0].elements(); ++i) bias_sums[i % s.out] += dy[i];
    for (int64_t o = 0; o < s.out; ++o) {
      a.adds[1].data<float>()[o] += static_cast<float>(bias_sums[o]);
    }
  });
}

}  // namespace

KernelList ConvolutionKernels() {
  return {{"convolution", Forward},
          {"convolution_input_gradient", InputGradient},
          {"convolution_weight_gradient", WeightGradient},
          {"transposed_convolution", InputGradient}};
}

}  // namespace stagecoach::reference
