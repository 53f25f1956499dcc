#include "stage/backends/cuda/kernels/pointwise/add.h"

#include "base/errors/check.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"

namespace stagecoach::cuda {
namespace {

void QueueSum(KernelBackend& backend, const char* what, const Tensor& a, const Tensor& b,
              const Tensor& y) {
  CHECK(a.elements() == y.elements() && b.elements() == y.elements()) << what;
  WithType(TypeOf(what, {&a, &b, &y}), [&]<typename T>(T) {
    backend.Note(Add(backend.Begin(), a.data<T>(), b.data<T>(), y.data<T>(), y.elements()), what);
  });
}

absl::StatusOr<Kernel> Sum(KernelBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    QueueSum(backend, "add", a.inputs[0], a.inputs[1], a.outputs[0]);
  });
}

absl::StatusOr<Kernel> AddShares(KernelBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    for (size_t i = 0; i < a.inputs.size(); ++i) {
      QueueSum(backend, "add_to", a.adds[i], a.inputs[i], a.adds[i]);
    }
  });
}

}  // namespace

KernelList AddKernels() { return {{"add", Sum}, {"add_to", AddShares}}; }

}  // namespace stagecoach::cuda
