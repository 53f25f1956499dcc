#include "stage/backends/cuda/kernels/pointwise/dropout.h"

#include "operations/pointwise/dropout.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/random_stream.h"

namespace stagecoach::cuda {
namespace {

absl::StatusOr<Kernel> PrepareDropout(KernelBackend& backend, const Call& call, const CallTypes&,
                                      DType) {
  const auto attributes = AttributesOf<DropoutAttributes>(call);
  return Kernel([&backend, attributes](const KernelContext& context, const KernelArguments& a) {
    constexpr char kWhat[] = "dropout";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(Dropout(backend.Begin(), a.inputs[0].data<T>(), a.outputs[0].data<T>(),
                           a.inputs[0].elements(), RuleOf(attributes.rate),
                           StreamOf(context.Stream(attributes.draw))),
                   kWhat);
    });
  });
}

}  // namespace

KernelList DropoutKernels() { return {{"dropout", PrepareDropout}}; }

}  // namespace stagecoach::cuda
