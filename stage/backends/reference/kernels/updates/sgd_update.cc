#include "operations/updates/sgd_update.h"

#include "stage/backends/reference/kernel_list.h"
#include "stage/backends/update_operands.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Update(ReferenceBackend& backend, const Call& call, const CallTypes&,
                              DType) {
  const auto attributes = AttributesOf<SgdUpdateAttributes>(call);
  return Kernel([&backend, attributes](const KernelContext& context, const KernelArguments& a) {
    const SgdNumbers f = NumbersOf(attributes, *context.update);
    const UpdateOperands of(a);
    float *w = of.value.data<float>(), *g = of.gradient.data<float>();
    float* velocity = of.states > 0 ? of.state(0).data<float>() : nullptr;
    for (int64_t i = 0; i < of.value.elements(); ++i) {
      float update = g[i] * f.gradient_scale;
      if (velocity != nullptr) {
        velocity[i] = f.momentum * velocity[i] + update;
        update = f.nesterov ? update + f.momentum * velocity[i] : velocity[i];
      }
      w[i] -= f.learning_rate * (update + f.weight_decay * w[i]);
    }
    if (of.copy.valid()) backend.Convert(of.value, of.copy);
  });
}

}  // namespace

KernelList SgdUpdateKernels() { return {{"sgd_update", Update}}; }

}  // namespace stagecoach::reference
