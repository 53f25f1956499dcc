#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Update(ReferenceBackend&, const Call&, const CallTypes&, DType) {
  return Kernel([](const KernelContext& context, const KernelArguments& a) {
    const auto rate = static_cast<float>(context.update->learning_rate);
    const float* w = a.inputs[0].data<float>();
    float* average = a.adds[0].data<float>();
    for (int64_t i = 0; i < a.inputs[0].elements(); ++i) average[i] += rate * (w[i] - average[i]);
  });
}

}  // namespace

KernelList AverageUpdateKernels() { return {{"average_update", Update}}; }

}  // namespace stagecoach::reference
