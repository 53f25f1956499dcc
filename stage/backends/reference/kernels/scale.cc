// operations/pointwise/scale.h
#include "operations/pointwise/scale.h"

#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Scale(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  const auto factor = static_cast<float>(AttributesOf<ScaleAttributes>(call).factor);
  return Kernel([factor](const KernelContext&, const KernelArguments& a) {
    const float* x = a.inputs[0].data<float>();
    float* y = a.outputs[0].data<float>();
    for (int64_t i = 0; i < a.outputs[0].elements(); ++i) y[i] = factor * x[i];
  });
}

}  // namespace

KernelList ScaleKernels() { return {{"scale", Scale}}; }

}  // namespace stagecoach::reference
