#include "stage/backends/cuda/kernels/images/pad.h"

#include "operations/images/pad.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"

namespace stagecoach::cuda {
namespace {

absl::StatusOr<Kernel> Pad(KernelBackend& backend, const Call& call, const CallTypes& types,
                           DType) {
  const auto by = AttributesOf<PadAttributes>(call);
  return Kernel([&backend, by, from = types.inputs[0].shape, to = types.outputs[0].shape](
                    const KernelContext& context, const KernelArguments& a) {
    const Tensor &x = a.inputs[0], &y = a.outputs[0];
    const PadShape shape{
        context.run.sequences, from[0], from[1], from[2], to[0], to[1], by.top, by.left};
    WithType(TypeOf("pad", {&x, &y}), [&]<typename T>(T) {
      backend.Note(PadImages(backend.Begin(), shape, x.data<T>(), y.data<T>()), "pad");
    });
  });
}

}  // namespace

KernelList PadKernels() { return {{"pad", Pad}}; }

}  // namespace stagecoach::cuda
