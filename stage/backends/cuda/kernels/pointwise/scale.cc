#include "stage/backends/cuda/kernels/pointwise/scale.h"

#include "operations/pointwise/scale.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"

namespace stagecoach::cuda {
namespace {

absl::StatusOr<Kernel> Prepare(KernelBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto factor = static_cast<float>(AttributesOf<ScaleAttributes>(call).factor);
  return Kernel([&backend, factor](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "scale";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(Scale(backend.Begin(), a.inputs[0].data<T>(), a.outputs[0].data<T>(),
                         a.outputs[0].elements(), factor),
                   kWhat);
    });
  });
}

}  // namespace

KernelList ScaleKernels() { return {{"scale", Prepare}}; }

}  // namespace stagecoach::cuda
