#include "stage/backends/cuda/kernels/pointwise/swiglu.h"

#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"

namespace stagecoach::cuda {
namespace {

absl::StatusOr<Kernel> Forward(KernelBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "swiglu";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.inputs[1], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(Swiglu(backend.Begin(), a.inputs[0].data<T>(), a.inputs[1].data<T>(),
                          a.outputs[0].data<T>(), a.outputs[0].elements()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> Gradient(KernelBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "swiglu_gradient";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.inputs[1], &a.inputs[2], &a.outputs[0]}),
             [&]<typename T>(T) {
               backend.Note(
                   SwigluGradient(backend.Begin(), a.inputs[0].data<T>(), a.inputs[1].data<T>(),
                                  a.inputs[2].data<T>(), a.outputs[0].data<T>(),
                                  a.outputs[1].data<T>(), a.outputs[0].elements()),
                   kWhat);
             });
  });
}

}  // namespace

KernelList SwigluKernels() { return {{"swiglu", Forward}, {"swiglu_gradient", Gradient}}; }

}  // namespace stagecoach::cuda
