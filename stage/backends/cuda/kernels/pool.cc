#include "stage/backends/cuda/kernels/pool.h"

#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/pool_shape.h"

namespace stagecoach::cuda {
namespace {

WindowShape ShapeOf(WindowShape shape, const KernelContext& context) {
  shape.samples = context.run.sequences;
  return shape;
}

absl::StatusOr<Kernel> PrepareMaxPool(KernelBackend& backend, const Call& call,
                                      const CallTypes& types, DType) {
  const WindowShape s =
      PoolShape(AttributesOf<MaxPoolAttributes>(call).steps, types.inputs[0], types.outputs[0]);
  return Kernel([&backend, s](const KernelContext& context, const KernelArguments& a) {
    WithType(TypeOf("max_pool", {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(MaxPool(backend.Begin(), ShapeOf(s, context), a.inputs[0].data<T>(),
                           a.outputs[0].data<T>(), a.outputs[1].data<int32_t>()),
                   "max_pool");
    });
  });
}

absl::StatusOr<Kernel> PrepareMaxPoolGradient(KernelBackend& backend, const Call& call,
                                              const CallTypes& types, DType) {
  const WindowShape s = PoolShape(AttributesOf<MaxPoolGradientAttributes>(call).steps,
                                  types.outputs[0], types.inputs[0]);
  return Kernel([&backend, s](const KernelContext& context, const KernelArguments& a) {
    constexpr char kWhat[] = "max_pool_gradient";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(MaxPoolGradient(backend.Begin(), ShapeOf(s, context), a.inputs[0].data<T>(),
                                   a.inputs[1].data<int32_t>(), a.outputs[0].data<T>()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> PrepareAveragePool(KernelBackend& backend, const Call& call,
                                          const CallTypes& types, DType) {
  const auto attributes = AttributesOf<AveragePoolAttributes>(call);
  const WindowShape s = PoolShape(attributes.steps, types.inputs[0], types.outputs[0]);
  return Kernel([&backend, s, padding = attributes.count_padding](const KernelContext& context,
                                                                  const KernelArguments& a) {
    WithType(TypeOf("average_pool", {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(AveragePool(backend.Begin(), ShapeOf(s, context), padding, a.inputs[0].data<T>(),
                               a.outputs[0].data<T>()),
                   "average_pool");
    });
  });
}

absl::StatusOr<Kernel> PrepareAveragePoolGradient(KernelBackend& backend, const Call& call,
                                                  const CallTypes& types, DType) {
  const auto attributes = AttributesOf<AveragePoolGradientAttributes>(call);
  const WindowShape s = PoolShape(attributes.steps, types.outputs[0], types.inputs[0]);
  return Kernel([&backend, s, padding = attributes.count_padding](const KernelContext& context,
                                                                  const KernelArguments& a) {
    constexpr char kWhat[] = "average_pool_gradient";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(AveragePoolGradient(backend.Begin(), ShapeOf(s, context), padding,
                                       a.inputs[0].data<T>(), a.outputs[0].data<T>()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> PrepareGlobal(KernelBackend& backend, const Call&, const CallTypes& types,
                                     DType) {
  const Shape& image = types.inputs[0].shape;
  return Kernel([&backend, places = image[0] * image[1], channels = image[2]](
                    const KernelContext& context, const KernelArguments& a) {
    constexpr char kWhat[] = "global_average_pool";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(GlobalAveragePool(backend.Begin(), context.run.sequences, places, channels,
                                     a.inputs[0].data<T>(), a.outputs[0].data<T>()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> PrepareGlobalGradient(KernelBackend& backend, const Call&,
                                             const CallTypes& types, DType) {
  const Shape& image = types.outputs[0].shape;
  return Kernel([&backend, places = image[0] * image[1], channels = image[2]](
                    const KernelContext& context, const KernelArguments& a) {
    constexpr char kWhat[] = "global_average_pool_gradient";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(
          GlobalAveragePoolGradient(backend.Begin(), context.run.sequences, places, channels,
                                    a.inputs[0].data<T>(), a.outputs[0].data<T>()),
          kWhat);
    });
  });
}

}  // namespace

KernelList PoolKernels() {
  return {{"max_pool", PrepareMaxPool},
          {"max_pool_gradient", PrepareMaxPoolGradient},
          {"average_pool", PrepareAveragePool},
          {"average_pool_gradient", PrepareAveragePoolGradient},
          {"global_average_pool", PrepareGlobal},
          {"global_average_pool_gradient", PrepareGlobalGradient}};
}

}  // namespace stagecoach::cuda
