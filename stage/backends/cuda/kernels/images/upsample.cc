#include "stage/backends/cuda/kernels/images/upsample.h"

#include "operations/images/upsample.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"

namespace stagecoach::cuda {
namespace {

// `small`: the type of the image that has fewer pixels.
UpsampleShape ShapeOf(const Plane& times, const Shape& small, const KernelContext& context) {
  return {context.run.sequences, small[0], small[1], small[2], times.height, times.width};
}

absl::StatusOr<Kernel> Forward(KernelBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const Plane times = AttributesOf<UpsampleAttributes>(call).times;
  return Kernel([&backend, times, small = types.inputs[0].shape](const KernelContext& context,
                                                                 const KernelArguments& a) {
    constexpr char kWhat[] = "upsample";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(Upsample(backend.Begin(), ShapeOf(times, small, context), a.inputs[0].data<T>(),
                            a.outputs[0].data<T>()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> Gradient(KernelBackend& backend, const Call& call, const CallTypes& types,
                                DType) {
  const Plane times = AttributesOf<UpsampleAttributes>(call).times;
  return Kernel([&backend, times, small = types.outputs[0].shape](const KernelContext& context,
                                                                  const KernelArguments& a) {
    constexpr char kWhat[] = "upsample_gradient";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(UpsampleGradient(backend.Begin(), ShapeOf(times, small, context),
                                    a.inputs[0].data<T>(), a.outputs[0].data<T>()),
                   kWhat);
    });
  });
}

}  // namespace

KernelList UpsampleKernels() { return {{"upsample", Forward}, {"upsample_gradient", Gradient}}; }

}  // namespace stagecoach::cuda
