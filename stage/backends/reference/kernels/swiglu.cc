#include <cmath>

#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

double Gate(double x) { return 1.0 / (1.0 + std::exp(-x)); }

absl::StatusOr<Kernel> Forward(ReferenceBackend&, const Call&, const CallTypes&, DType) {
  return Kernel([](const KernelContext&, const KernelArguments& a) {
    const float *gate = a.inputs[0].data<float>(), *up = a.inputs[1].data<float>();
    float* y = a.outputs[0].data<float>();
    for (int64_t i = 0; i < a.outputs[0].elements(); ++i) {
      y[i] = static_cast<float>(gate[i] * Gate(gate[i]) * up[i]);
    }
  });
}

// The first output may be dy.
absl::StatusOr<Kernel> Gradient(ReferenceBackend&, const Call&, const CallTypes&, DType) {
  return Kernel([](const KernelContext&, const KernelArguments& a) {
    const float *dy = a.inputs[0].data<float>(), *gate = a.inputs[1].data<float>(),
                *up = a.inputs[2].data<float>();
    float *d_gate = a.outputs[0].data<float>(), *d_up = a.outputs[1].data<float>();
    for (int64_t i = 0; i < a.outputs[0].elements(); ++i) {
      const double d = dy[i], x = gate[i], s = Gate(x);
      d_gate[i] = static_cast<float>(d * up[i] * s * (1.0 + x * (1.0 - s)));
      d_up[i] = static_cast<float>(d * x * s);
    }
  });
}

}  // namespace

KernelList SwigluKernels() { return {{"swiglu", Forward}, {"swiglu_gradient", Gradient}}; }

}  // namespace stagecoach::reference
