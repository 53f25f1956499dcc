#include "stage/backends/cuda/kernels/images/pool.h"

#include "stage/backends/call_shapes.h"
#include "stage/backends/cuda/cudnn/pool/pool_operands.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"

namespace stagecoach::cuda {
namespace {

WindowShape ShapeOf(WindowShape shape, const KernelContext& context) {
  shape.samples = context.run.sequences;
  return shape;
}

// One window as large as the image.
WindowShape WholeImage(const Shape& image, const KernelContext& context) {
  return {.samples = context.run.sequences,
          .height = image[0],
          .width = image[1],
          .channels = image[2],
          .places_height = 1,
          .places_width = 1,
          .size_height = image[0],
          .size_width = image[1],
          .stride_height = image[0],
          .stride_width = image[1],
          .padding_height = 0,
          .padding_width = 0,
          .dilation_height = 1,
          .dilation_width = 1};
}

// Whether own kernels are to compute it: neither did a library, nor is anything noted against it.
bool IsLeftToOwnKernels(KernelBackend& backend, const AveragePoolArgs& args, const char* what) {
  const absl::StatusOr<bool> queued = backend.AverageByLibrary(args);
  if (!queued.ok()) backend.NoteStatus(queued.status(), what);
  return queued.ok() && !*queued;
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
    constexpr char kWhat[] = "average_pool";
    const DType type = TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]});
    const AveragePoolArgs args = {.pass = PoolPass::kForward,
                                  .shape = ShapeOf(s, context),
                                  .count_padding = padding,
                                  .image = a.inputs[0],
                                  .places = a.outputs[0]};
    if (!IsLeftToOwnKernels(backend, args, kWhat)) return;
    WithType(type, [&]<typename T>(T) {
      backend.Note(AveragePool(backend.Begin(), args.shape, padding, args.image.data<T>(),
                               args.places.data<T>()),
                   kWhat);
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
    const DType type = TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]});
    const AveragePoolArgs args = {.pass = PoolPass::kGradient,
                                  .shape = ShapeOf(s, context),
                                  .count_padding = padding,
                                  .image = a.outputs[0],
                                  .places = a.inputs[0]};
    if (!IsLeftToOwnKernels(backend, args, kWhat)) return;
    WithType(type, [&]<typename T>(T) {
      backend.Note(AveragePoolGradient(backend.Begin(), args.shape, padding, args.places.data<T>(),
                                       args.image.data<T>()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> PrepareGlobal(KernelBackend& backend, const Call&, const CallTypes& types,
                                     DType) {
  return Kernel([&backend, image = types.inputs[0].shape](const KernelContext& context,
                                                          const KernelArguments& a) {
    constexpr char kWhat[] = "global_average_pool";
    const DType type = TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]});
    const AveragePoolArgs args = {.pass = PoolPass::kForward,
                                  .shape = WholeImage(image, context),
                                  .image = a.inputs[0],
                                  .places = a.outputs[0]};
    if (!IsLeftToOwnKernels(backend, args, kWhat)) return;
    WithType(type, [&]<typename T>(T) {
      backend.Note(GlobalAveragePool(backend.Begin(), context.run.sequences, image[0] * image[1],
                                     image[2], args.image.data<T>(), args.places.data<T>()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> PrepareGlobalGradient(KernelBackend& backend, const Call&,
                                             const CallTypes& types, DType) {
  return Kernel([&backend, image = types.outputs[0].shape](const KernelContext& context,
                                                           const KernelArguments& a) {
    constexpr char kWhat[] = "global_average_pool_gradient";
    const DType type = TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]});
    const AveragePoolArgs args = {.pass = PoolPass::kGradient,
                                  .shape = WholeImage(image, context),
                                  .image = a.outputs[0],
                                  .places = a.inputs[0]};
    if (!IsLeftToOwnKernels(backend, args, kWhat)) return;
    WithType(type, [&]<typename T>(T) {
      backend.Note(
          GlobalAveragePoolGradient(backend.Begin(), context.run.sequences, image[0] * image[1],
                                    image[2], args.places.data<T>(), args.image.data<T>()),
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
