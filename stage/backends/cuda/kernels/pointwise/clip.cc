#include "stage/backends/cuda/kernels/pointwise/clip.h"

#include "operations/pointwise/clip.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"

namespace stagecoach::cuda {
namespace {

float LimitOf(const Call& call) {
  return static_cast<float>(AttributesOf<ClipAttributes>(call).limit);
}

absl::StatusOr<Kernel> Forward(KernelBackend& backend, const Call& call, const CallTypes&, DType) {
  return Kernel([&backend, limit = LimitOf(call)](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "clip";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(Clip(backend.Begin(), a.inputs[0].data<T>(), a.outputs[0].data<T>(),
                        a.outputs[0].elements(), limit),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> Gradient(KernelBackend& backend, const Call& call, const CallTypes&, DType) {
  return Kernel([&backend, limit = LimitOf(call)](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "clip_gradient";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.inputs[1], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(ClipGradient(backend.Begin(), a.inputs[0].data<T>(), a.inputs[1].data<T>(),
                                a.outputs[0].data<T>(), a.outputs[0].elements(), limit),
                   kWhat);
    });
  });
}

}  // namespace

KernelList ClipKernels() { return {{"clip", Forward}, {"clip_gradient", Gradient}}; }

}  // namespace stagecoach::cuda
