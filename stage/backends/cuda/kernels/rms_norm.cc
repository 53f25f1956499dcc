#include "stage/backends/cuda/kernels/rms_norm.h"

#include "operations/rms_norm.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/launch_config.h"

namespace stagecoach::cuda {
namespace {

RowsShape RowsOf(const Tensor& x) {
  const int64_t width = x.shape().back();
  return {width == 0 ? 0 : x.elements() / width, width};
}

absl::StatusOr<Kernel> Forward(KernelBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto epsilon = static_cast<float>(AttributesOf<RmsNormAttributes>(call).epsilon);
  return Kernel([&backend, epsilon](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "rms_norm";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(RmsNorm(backend.Begin(), RowsOf(a.inputs[0]), a.inputs[0].data<T>(),
                           a.inputs[1].data<float>(), epsilon, a.outputs[0].data<T>(),
                           a.outputs[1].data<float>()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> InputGradient(KernelBackend& backend, const Call& call, const CallTypes&,
                                     DType) {
  const bool adds = AttributesOf<RmsNormGradientAttributes>(call).residual;
  return Kernel([&backend, adds](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "rms_norm_input_gradient";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.inputs[1], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(RmsNormInputGradient<T>(
                       backend.Begin(), RowsOf(a.inputs[0]), a.inputs[0].data<T>(),
                       a.inputs[1].data<T>(), a.inputs[2].data<float>(), a.inputs[3].data<float>(),
                       adds ? a.inputs[4].data<T>() : nullptr, a.outputs[0].data<T>()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> WeightGradient(KernelBackend& backend, const Call&, const CallTypes&,
                                      DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "rms_norm_weight_gradient";
    const RowsShape shape = RowsOf(a.inputs[0]);
    const cudaStream_t stream = backend.Begin();
    const size_t bytes = PlanColumnSum(shape.rows, shape.width, 1, 1).scratch_bytes;
    auto* const scratch = static_cast<float*>(backend.Scratch(bytes, kWhat));
    if (scratch == nullptr) return;
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.inputs[1]}), [&]<typename T>(T) {
      backend.Note(
          RmsNormWeightGradient(stream, shape, a.inputs[0].data<T>(), a.inputs[1].data<T>(),
                                a.inputs[2].data<float>(), a.adds[0].data<float>(), scratch),
          kWhat);
    });
  });
}

}  // namespace

KernelList RmsNormKernels() {
  return {{"rms_norm", Forward},
          {"rms_norm_input_gradient", InputGradient},
          {"rms_norm_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::cuda
