#include "stage/backends/cuda/kernels/attention/prepend_token.h"

#include "operations/attention/prepend_token.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"

namespace stagecoach::cuda {
namespace {

absl::StatusOr<Kernel> Forward(KernelBackend& backend, const Call&, const CallTypes& types, DType) {
  return Kernel([&backend, to = types.outputs[0].shape](const KernelContext& context,
                                                        const KernelArguments& a) {
    constexpr char kWhat[] = "prepend_token";
    const PrependTokenShape shape{context.run.sequences, to[0], to[1]};
    const DType type = TypeOf(kWhat, {&a.inputs[0], &a.inputs[1], &a.inputs[2], &a.outputs[0]});
    WithType(type, [&]<typename T>(T) {
      backend.Note(
          PrependToken(backend.Begin(), shape, a.inputs[0].data<T>(), a.inputs[1].data<T>(),
                       a.inputs[2].data<T>(), a.outputs[0].data<T>()),
          kWhat);
    });
  });
}

absl::StatusOr<Kernel> WeightGradient(KernelBackend& backend, const Call&, const CallTypes& types,
                                      DType) {
  return Kernel([&backend, from = types.inputs[0].shape](const KernelContext& context,
                                                         const KernelArguments& a) {
    constexpr char kWhat[] = "prepend_token_weight_gradient";
    const PrependTokenShape shape{context.run.sequences, from[0], from[1]};
    WithType(TypeOf(kWhat, {&a.inputs[0]}), [&]<typename T>(T) {
      backend.Note(PrependTokenBackward(backend.Begin(), shape, a.inputs[0].data<T>(),
                                        a.adds[0].data<float>(), a.adds[1].data<float>()),
                   kWhat);
    });
  });
}

}  // namespace

KernelList PrependTokenKernels() {
  return {{"prepend_token", Forward}, {"prepend_token_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::cuda
