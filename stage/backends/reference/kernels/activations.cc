// Of one value, element by element (operations/pointwise/activations.cc).
#include <algorithm>
#include <cmath>

#include "stage/backends/reference/gelu.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

double GeluGradient(double dy, double x) { return dy * GeluDerivative(x); }
double GeluErfGradient(double dy, double x) { return dy * GeluErfDerivative(x); }
double Silu(double x) { return x / (1.0 + std::exp(-x)); }
double SiluGradient(double dy, double x) {
  const double gate = 1.0 / (1.0 + std::exp(-x));
  return dy * gate * (1.0 + x * (1.0 - gate));
}
double Relu(double x) { return std::max(x, 0.0); }
double ReluGradient(double dy, double y) { return y > 0.0 ? dy : 0.0; }

template <double (*kFunction)(double)>
absl::StatusOr<Kernel> Map(ReferenceBackend&, const Call&, const CallTypes&, DType) {
  return Kernel([](const KernelContext&, const KernelArguments& a) {
    const float* x = a.inputs[0].data<float>();
    float* y = a.outputs[0].data<float>();
    for (int64_t i = 0; i < a.outputs[0].elements(); ++i) {
      y[i] = static_cast<float>(kFunction(x[i]));
    }
  });
}

template <double (*kFunction)(double, double)>
absl::StatusOr<Kernel> MapTwo(ReferenceBackend&, const Call&, const CallTypes&, DType) {
  return Kernel([](const KernelContext&, const KernelArguments& a) {
    const float *x = a.inputs[0].data<float>(), *other = a.inputs[1].data<float>();
    float* y = a.outputs[0].data<float>();
    for (int64_t i = 0; i < a.outputs[0].elements(); ++i) {
      y[i] = static_cast<float>(kFunction(x[i], other[i]));
    }
  });
}

}  // namespace

KernelList ActivationsKernels() {
  return {{"gelu", Map<Gelu>},        {"gelu_gradient", MapTwo<GeluGradient>},
          {"gelu_erf", Map<GeluErf>}, {"gelu_erf_gradient", MapTwo<GeluErfGradient>},
          {"silu", Map<Silu>},        {"silu_gradient", MapTwo<SiluGradient>},
          {"relu", Map<Relu>},        {"relu_gradient", MapTwo<ReluGradient>}};
}

}  // namespace stagecoach::reference
