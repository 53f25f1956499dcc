// Rows of the last extent by plain loops (operations/norms/layer_norm.h).
#include "operations/norms/layer_norm.h"

#include <cmath>

#include "base/errors/check.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Forward(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  const auto epsilon = static_cast<float>(AttributesOf<LayerNormAttributes>(call).epsilon);
  return Kernel([epsilon](const KernelContext&, const KernelArguments& a) {
    const int64_t rows = a.inputs[0].shape()[0], width = a.inputs[0].shape()[1];
    CHECK_EQ(a.inputs[1].elements(), width) << "layer norm";
    const float *weight = a.inputs[1].data<float>(), *bias = a.inputs[2].data<float>();
    for (int64_t r = 0; r < rows; ++r) {
      const float* x = a.inputs[0].data<float>() + r * width;
      float* y = a.outputs[0].data<float>() + r * width;
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < width; ++i) mean += x[i];
      mean /= static_cast<double>(width);
      for (int64_t i = 0; i < width; ++i) variance += (x[i] - mean) * (x[i] - mean);
      variance /= static_cast<double>(width);
      const double rstd = 1.0 / std::sqrt(variance + epsilon);
      for (int64_t i = 0; i < width; ++i) {
        y[i] = static_cast<float>((x[i] - mean) * rstd * weight[i] + bias[i]);
      }
      a.outputs[1].data<float>()[r] = static_cast<float>(mean);
      a.outputs[2].data<float>()[r] = static_cast<float>(rstd);
    }
  });
}

// With xhat = (x - mean) rstd and g = dy * weight:
// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)).
absl::StatusOr<Kernel> InputGradient(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  const bool adds = AttributesOf<LayerNormGradientAttributes>(call).residual;
  return Kernel([adds](const KernelContext&, const KernelArguments& a) {
    const int64_t rows = a.inputs[1].shape()[0], width = a.inputs[1].shape()[1];
    CHECK(!adds || a.inputs[5].elements() == rows * width) << "layer norm, residual";
    const float* weight = a.inputs[2].data<float>();
    const float* residual = adds ? a.inputs[5].data<float>() : nullptr;
    for (int64_t r = 0; r < rows; ++r) {
      const float* dy = a.inputs[0].data<float>() + r * width;
      const float* x = a.inputs[1].data<float>() + r * width;
      float* dx = a.outputs[0].data<float>() + r * width;
      const double mean = a.inputs[3].data<float>()[r], rstd = a.inputs[4].data<float>()[r];
      double sum_g = 0, sum_gx = 0;
      for (int64_t i = 0; i < width; ++i) {
        const double g = double{dy[i]} * weight[i];
        sum_g += g;
        sum_gx += g * (x[i] - mean) * rstd;
      }
      for (int64_t i = 0; i < width; ++i) {
        const double g = double{dy[i]} * weight[i], xhat = (x[i] - mean) * rstd;
        float gradient =
            static_cast<float>(rstd * (g - (sum_g + xhat * sum_gx) / static_cast<double>(width)));
        if (residual != nullptr) gradient += residual[r * width + i];
        dx[i] = gradient;
      }
    }
  });
}

absl::StatusOr<Kernel> WeightGradient(ReferenceBackend&, const Call&, const CallTypes&, DType) {
  return Kernel([](const KernelContext&, const KernelArguments& a) {
    const int64_t rows = a.inputs[1].shape()[0], width = a.inputs[1].shape()[1];
    const float *dy = a.inputs[0].data<float>(), *x = a.inputs[1].data<float>();
    const float *mean = a.inputs[2].data<float>(), *rstd = a.inputs[3].data<float>();
    for (int64_t i = 0; i < width; ++i) {
      double d_weight = 0, d_bias = 0;
      for (int64_t r = 0; r < rows; ++r) {
        const double gradient = dy[r * width + i];
        d_weight += gradient * ((double{x[r * width + i]} - mean[r]) * rstd[r]);
        d_bias += gradient;
      }
      a.adds[0].data<float>()[i] += static_cast<float>(d_weight);
      a.adds[1].data<float>()[i] += static_cast<float>(d_bias);
    }
  });
}

}  // namespace

KernelList LayerNormKernels() {
  return {{"layer_norm", Forward},
          {"layer_norm_input_gradient", InputGradient},
          {"layer_norm_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::reference
