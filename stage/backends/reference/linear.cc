#include <vector>

#include "base/check.h"
#include "base/progress.h"
#include "stage/backends/reference/gelu.h"
#include "stage/backends/reference/reference_backend.h"

namespace stagecoach {

void ReferenceBackend::LinearForward(const LinearForwardArgs& args) {
  const int64_t rows = args.x.shape()[0], in = args.weight.shape()[1], out = args.weight.shape()[0];
  CHECK_EQ(args.x.shape()[1], in) << "linear";
  CHECK_EQ(args.y.elements(), rows * out) << "linear";
  CHECK(!args.residual.valid() || !args.activation.valid()) << "linear with GELU and residual";
  CHECK(!args.residual.valid() || args.residual.elements() == rows * out) << "linear, residual";
  const float *x = args.x.data<float>(), *w = args.weight.data<float>();
  const float* bias = args.bias.valid() ? args.bias.data<float>() : nullptr;
  float* y = args.y.data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    TickProgress();
    for (int64_t o = 0; o < out; ++o) {
      double sum = bias == nullptr ? 0.0 : bias[o];
      for (int64_t i = 0; i < in; ++i) sum += double{x[r * in + i]} * w[o * in + i];
      y[r * out + o] = static_cast<float>(sum);
    }
  }
  if (args.residual.valid()) {
    const float* residual = args.residual.data<float>();
    for (int64_t i = 0; i < rows * out; ++i) y[i] += residual[i];
  }
  if (!args.activation.valid()) return;
  float* activation = args.activation.data<float>();
  for (int64_t i = 0; i < rows * out; ++i) activation[i] = static_cast<float>(Gelu(y[i]));
}

void ReferenceBackend::LinearBackwardInput(const LinearBackwardInputArgs& args) {
  const int64_t rows = args.dy.shape()[0], in = args.weight.shape()[1],
                out = args.weight.shape()[0];
  CHECK_EQ(args.dy.shape()[1], out) << "linear backward";
  CHECK_EQ(args.dx.elements(), rows * in) << "linear backward";
  const float *dy = args.dy.data<float>(), *w = args.weight.data<float>();
  const float* gelu_input = args.gelu_input.valid() ? args.gelu_input.data<float>() : nullptr;
  float* dx = args.dx.data<float>();
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
}

void ReferenceBackend::LinearBackwardWeight(const LinearBackwardWeightArgs& args) {
  const int64_t rows = args.dy.shape()[0], out = args.dy.shape()[1], in = args.x.shape()[1];
  CHECK_EQ(args.x.shape()[0], rows) << "linear backward";
  CHECK_EQ(args.d_weight.elements(), out * in) << "linear backward";
  const float *dy = args.dy.data<float>(), *x = args.x.data<float>();
  float* d_weight = args.d_weight.data<float>();
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
    if (args.d_bias.valid()) args.d_bias.data<float>()[o] += static_cast<float>(bias_sum);
  }
}

}  // namespace stagecoach
