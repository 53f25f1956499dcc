// Products by plain loops, sums in double (operations/linear.h).
#include "operations/linear.h"

#include <algorithm>
#include <vector>

#include "base/errors/check.h"
#include "base/threads/progress.h"
#include "stage/backends/reference/gelu.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Forward(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  const auto attributes = AttributesOf<LinearAttributes>(call);
  return Kernel([attributes](const KernelContext&, const KernelArguments& a) {
    const Tensor &x = a.inputs[0], &weight = a.inputs[1];
    const int64_t rows = x.shape()[0], in = weight.shape()[1], out = weight.shape()[0];
    CHECK_EQ(x.shape()[1], in) << "linear";
    CHECK_EQ(a.outputs[0].elements(), rows * out) << "linear";
    const float *x_data = x.data<float>(), *w = weight.data<float>();
    const float* bias = attributes.bias ? a.inputs[2].data<float>() : nullptr;
    float* y = a.outputs[0].data<float>();
    for (int64_t r = 0; r < rows; ++r) {
      TickProgress();
      for (int64_t o = 0; o < out; ++o) {
        double sum = bias == nullptr ? 0.0 : bias[o];
        for (int64_t i = 0; i < in; ++i) sum += double{x_data[r * in + i]} * w[o * in + i];
        y[r * out + o] = static_cast<float>(sum);
      }
    }
    if (attributes.residual) {
      const Tensor& addend = a.inputs[attributes.bias ? 3 : 2];
      CHECK_EQ(addend.elements(), rows * out) << "linear, residual";
      const float* residual = addend.data<float>();
      for (int64_t i = 0; i < rows * out; ++i) y[i] += residual[i];
    }
    if (!attributes.gelu) return;
    float* activation = a.outputs[1].data<float>();
    for (int64_t i = 0; i < rows * out; ++i) activation[i] = static_cast<float>(Gelu(y[i]));
  });
}

absl::StatusOr<Kernel> InputGradient(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  const bool gelu = AttributesOf<LinearInputGradientAttributes>(call).gelu;
  return Kernel([gelu](const KernelContext&, const KernelArguments& a) {
    const Tensor& weight = a.inputs[1];
    const int64_t rows = a.inputs[0].shape()[0], in = weight.shape()[1], out = weight.shape()[0];
    CHECK_EQ(a.inputs[0].shape()[1], out) << "linear backward";
    CHECK_EQ(a.outputs[0].elements(), rows * in) << "linear backward";
    const float *dy = a.inputs[0].data<float>(), *w = weight.data<float>();
    const float* gelu_input = gelu ? a.inputs[2].data<float>() : nullptr;
    float* dx = a.outputs[0].data<float>();
    std::vector<double> sums(in);
    for (int64_t r = 0; r < rows; ++r) {
      TickProgress();
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t o = 0; o < out; ++o) {
        for (int64_t i = 0; i < in; ++i) sums[i] += double{dy[r * out + o]} * w[o * in + i];
      }
      for (int64_t i = 0; i < in; ++i) {
        const double factor = gelu_input == nullptr ? 1.0 : GeluDerivative(gelu_input[r * in + i]);
        dx[r * in + i] = static_cast<float>(sums[i] * factor);
      }
    }
  });
}

absl::StatusOr<Kernel> WeightGradient(ReferenceBackend&, const Call& call, const CallTypes&,
                                      DType) {
  const bool bias = AttributesOf<LinearWeightGradientAttributes>(call).bias;
  return Kernel([bias](const KernelContext&, const KernelArguments& a) {
    const int64_t rows = a.inputs[0].shape()[0], out = a.inputs[0].shape()[1];
    const int64_t in = a.inputs[1].shape()[1];
    CHECK_EQ(a.inputs[1].shape()[0], rows) << "linear backward";
    CHECK_EQ(a.adds[0].elements(), out * in) << "linear backward";
    const float *dy = a.inputs[0].data<float>(), *x = a.inputs[1].data<float>();
    float* d_weight = a.adds[0].data<float>();
    std::vector<double> sums(in);
    for (int64_t o = 0; o < out; ++o) {
      std::fill(sums.begin(), sums.end(), 0.0);
      double bias_sum = 0;
      for (int64_t r = 0; r < rows; ++r) {
        TickProgress();
        const double gradient = dy[r * out + o];
        bias_sum += gradient;
        for (int64_t i = 0; i < in; ++i) sums[i] += gradient * x[r * in + i];
      }
      for (int64_t i = 0; i < in; ++i) d_weight[o * in + i] += static_cast<float>(sums[i]);
      if (bias) a.adds[1].data<float>()[o] += static_cast<float>(bias_sum);
    }
  });
}

}  // namespace

KernelList LinearKernels() {
  return {{"linear", Forward},
          {"linear_input_gradient", InputGradient},
          {"linear_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::reference
