#include "operations/updates/lamb_update.h"

#include <cmath>

#include "stage/backends/reference/kernel_list.h"
#include "stage/backends/update_operands.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Update(ReferenceBackend& backend, const Call& call, const CallTypes&,
                              DType) {
  const auto attributes = AttributesOf<LambUpdateAttributes>(call);
  return Kernel([&backend, attributes](const KernelContext& context, const KernelArguments& a) {
    const AdamWNumbers f = NumbersOf(attributes, *context.update);
    const UpdateOperands of(a);
    float *w = of.value.data<float>(), *u = of.gradient.data<float>();
    float *m = of.state(0).data<float>(), *v = of.state(1).data<float>();
    double value = 0, direction = 0;  // squared norms
    for (int64_t i = 0; i < of.value.elements(); ++i) {
      const float g = u[i] * f.gradient_scale;
      m[i] = f.beta1 * m[i] + (1.0f - f.beta1) * g;
      v[i] = f.beta2 * v[i] + (1.0f - f.beta2) * g * g;
      const float root = std::sqrt(v[i] / f.correction2) + f.epsilon;
      u[i] = m[i] / f.correction1 / root + f.weight_decay * w[i];
      value += static_cast<double>(w[i]) * w[i];
      direction += static_cast<double>(u[i]) * u[i];
    }
    const float rate = LambRate(attributes.adapt, f.learning_rate, value, direction);
    for (int64_t i = 0; i < of.value.elements(); ++i) w[i] -= rate * u[i];
    if (of.copy.valid()) backend.Convert(of.value, of.copy);
  });
}

}  // namespace

KernelList LambUpdateKernels() { return {{"lamb_update", Update}}; }

}  // namespace stagecoach::reference
