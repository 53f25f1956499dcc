#include "operations/updates/rmsprop_update.h"

#include <cmath>

#include "stage/backends/reference/kernel_list.h"
#include "stage/backends/update_operands.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Update(ReferenceBackend& backend, const Call& call, const CallTypes&,
                              DType) {
  const auto attributes = AttributesOf<RmsPropUpdateAttributes>(call);
  return Kernel([&backend, attributes](const KernelContext& context, const KernelArguments& a) {
    const RmsPropNumbers f = NumbersOf(attributes, *context.update);
    const UpdateOperands of(a);
    float *w = of.value.data<float>(), *square = of.state(0).data<float>();
    float* velocity = of.states > 1 ? of.state(1).data<float>() : nullptr;
    const float* gradient = of.gradient.data<float>();
    for (int64_t i = 0; i < of.value.elements(); ++i) {
      const float g = gradient[i] * f.gradient_scale + f.weight_decay * w[i];
      square[i] = f.decay * square[i] + (1.0f - f.decay) * g * g;
      float update = f.inner_rate * g / (std::sqrt(square[i] + f.inside) + f.outside);
      if (velocity != nullptr) {
        velocity[i] = f.momentum * velocity[i] + update;
        update = velocity[i];
      }
      w[i] -= f.outer_rate * update;
    }
    if (of.copy.valid()) backend.Convert(of.value, of.copy);
  });
}

}  // namespace

KernelList RmsPropUpdateKernels() { return {{"rmsprop_update", Update}}; }

}  // namespace stagecoach::reference
