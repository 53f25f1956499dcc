// Rows of the last extent by plain loops (operations/norms/rms_norm.h).
#include "operations/norms/rms_norm.h"

#include <cmath>

#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

struct Rows {
  int64_t rows, width;
};
Rows RowsOf(const Tensor& x) {
  const int64_t width = x.shape().back();
  return {width == 0 ? 0 : x.elements() / width, width};
}

absl::StatusOr<Kernel> Forward(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  const double epsilon = AttributesOf<RmsNormAttributes>(call).epsilon;
  return Kernel([epsilon](const KernelContext&, const KernelArguments& a) {
    const auto [rows, width] = RowsOf(a.inputs[0]);
    const float* weight = a.inputs[1].data<float>();
    for (int64_t r = 0; r < rows; ++r) {
      const float* x = a.inputs[0].data<float>() + r * width;
      float* y = a.outputs[0].data<float>() + r * width;
      double squares = 0;
      for (int64_t i = 0; i < width; ++i) squares += double{x[i]} * x[i];
      const double rstd = 1.0 / std::sqrt(squares / static_cast<double>(width) + epsilon);
      for (int64_t i = 0; i < width; ++i) y[i] = static_cast<float>(x[i] * rstd * weight[i]);
      a.outputs[1].data<float>()[r] = static_cast<float>(rstd);
    }
  });
}

absl::StatusOr<Kernel> InputGradient(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  const bool residual = AttributesOf<RmsNormGradientAttributes>(call).residual;
  return Kernel([residual](const KernelContext&, const KernelArguments& a) {
    const auto [rows, width] = RowsOf(a.inputs[0]);
    const float* weight = a.inputs[2].data<float>();
    for (int64_t r = 0; r < rows; ++r) {
      const float *dy = a.inputs[0].data<float>() + r * width,
                  *x = a.inputs[1].data<float>() + r * width;
      float* dx = a.outputs[0].data<float>() + r * width;
      const double rstd = a.inputs[3].data<float>()[r];
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) sum += double{dy[i]} * weight[i] * x[i];
      const double shared = rstd * rstd * sum / static_cast<double>(width);
      for (int64_t i = 0; i < width; ++i) {
        double gradient = rstd * (double{dy[i]} * weight[i] - x[i] * shared);
        if (residual) gradient += a.inputs[4].data<float>()[r * width + i];
        dx[i] = static_cast<float>(gradient);
      }
    }
  });
}

absl::StatusOr<Kernel> WeightGradient(ReferenceBackend&, const Call&, const CallTypes&, DType) {
  return Kernel([](const KernelContext&, const KernelArguments& a) {
    const auto [rows, width] = RowsOf(a.inputs[0]);
    const float *dy = a.inputs[0].data<float>(), *x = a.inputs[1].data<float>();
    for (int64_t i = 0; i < width; ++i) {
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r) {
        sum += double{dy[r * width + i]} * x[r * width + i] * a.inputs[2].data<float>()[r];
      }
      a.adds[0].data<float>()[i] += static_cast<float>(sum);
    }
  });
}

}  // namespace

KernelList RmsNormKernels() {
  return {{"rms_norm", Forward},
          {"rms_norm_input_gradient", InputGradient},
          {"rms_norm_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::reference
