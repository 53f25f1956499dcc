// Sums of two values, and of shares of a parameter's gradient (operations/pointwise/add.cc,
// operations/norms/batch_norm.h).
#include "base/errors/check.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Sum(ReferenceBackend&, const Call&, const CallTypes&, DType) {
  return Kernel([](const KernelContext&, const KernelArguments& x) {
    CHECK_EQ(x.inputs[0].elements(), x.inputs[1].elements()) << "add";
    const float *a = x.inputs[0].data<float>(), *b = x.inputs[1].data<float>();
    float* y = x.outputs[0].data<float>();
    for (int64_t i = 0; i < x.outputs[0].elements(); ++i) y[i] = a[i] + b[i];
  });
}

absl::StatusOr<Kernel> AddShares(ReferenceBackend&, const Call&, const CallTypes&, DType) {
  return Kernel([](const KernelContext&, const KernelArguments& a) {
    for (size_t k = 0; k < a.inputs.size(); ++k) {
      CHECK_EQ(a.inputs[k].elements(), a.adds[k].elements()) << "add_to";
      const float* x = a.inputs[k].data<float>();
      float* sum = a.adds[k].data<float>();
      for (int64_t i = 0; i < a.adds[k].elements(); ++i) sum[i] += x[i];
    }
  });
}

}  // namespace

KernelList AddKernels() { return {{"add", Sum}, {"add_to", AddShares}}; }

}  // namespace stagecoach::reference
