#include <cmath>

#include "base/check.h"
#include "stage/backends/reference/reference_backend.h"

namespace stagecoach {

void ReferenceBackend::LayerNormForward(const LayerNormForwardArgs& args) {
  const int64_t rows = args.x.shape()[0], width = args.x.shape()[1];
  CHECK_EQ(args.weight.elements(), width) << "layer norm";
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = args.x.data<float>() + r * width;
    float* y = args.y.data<float>() + r * width;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < width; ++i) mean += x[i];
    mean /= static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i) variance += (x[i] - mean) * (x[i] - mean);
    variance /= static_cast<double>(width);
    const double rstd = 1.0 / std::sqrt(variance + args.epsilon);
    for (int64_t i = 0; i < width; ++i) {
      y[i] = static_cast<float>((x[i] - mean) * rstd * args.weight.data<float>()[i] +
                                args.bias.data<float>()[i]);
    }
    args.mean.data<float>()[r] = static_cast<float>(mean);
    args.rstd.data<float>()[r] = static_cast<float>(rstd);
  }
}

// With xhat = (x - mean) rstd and g = dy * weight:
// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)).
void ReferenceBackend::LayerNormBackwardInput(const LayerNormBackwardInputArgs& args) {
  const int64_t rows = args.x.shape()[0], width = args.x.shape()[1];
  const float* weight = args.weight.data<float>();
  CHECK(!args.residual.valid() || args.residual.elements() == rows * width)
      << "layer norm, residual";
  const float* residual = args.residual.valid() ? args.residual.data<float>() : nullptr;
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = args.x.data<float>() + r * width;
    const float* dy = args.dy.data<float>() + r * width;
    float* dx = args.dx.data<float>() + r * width;
    const double mean = args.mean.data<float>()[r], rstd = args.rstd.data<float>()[r];
    double sum_g = 0, sum_gx = 0;
    for (int64_t i = 0; i < width; ++i) {
      const double g = double{dy[i]} * weight[i];
      sum_g += g;
      sum_gx += g * (x[i] - mean) * rstd;
    }
    for (int64_t i = 0; i < width; ++i) {
      const double g = double{dy[i]} * weight[i], xhat = (x[i] - mean) * rstd;
      dx[i] = static_cast<float>(rstd * (g - (sum_g + xhat * sum_gx) / static_cast<double>(width)));
      if (residual != nullptr) dx[i] += residual[r * width + i];
    }
  }
}

void ReferenceBackend::LayerNormBackwardWeight(const LayerNormBackwardWeightArgs& args) {
  const int64_t rows = args.x.shape()[0], width = args.x.shape()[1];
  for (int64_t i = 0; i < width; ++i) {
    double d_weight = 0, d_bias = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const double dy = args.dy.data<float>()[r * width + i];
      const double xhat =
          (double{args.x.data<float>()[r * width + i]} - args.mean.data<float>()[r]) *
          args.rstd.data<float>()[r];
      d_weight += dy * xhat;
      d_bias += dy;
    }
    args.d_weight.data<float>()[i] += static_cast<float>(d_weight);
    args.d_bias.data<float>()[i] += static_cast<float>(d_bias);
  }
}

}  // namespace stagecoach
