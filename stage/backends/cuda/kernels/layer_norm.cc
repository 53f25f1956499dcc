#include "stage/backends/cuda/kernels/layer_norm.h"

#include "base/check.h"
#include "operations/layer_norm.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/launch_config.h"

namespace stagecoach::cuda {
namespace {

LayerNormShape ShapeOf(const Tensor& x) { return {x.shape()[0], x.shape()[1]}; }

absl::StatusOr<Kernel> Forward(KernelBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto epsilon = static_cast<float>(AttributesOf<LayerNormAttributes>(call).epsilon);
  return Kernel([&backend, epsilon](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "layer_norm";
    const LayerNormShape shape = ShapeOf(a.inputs[0]);
    CHECK_EQ(a.inputs[1].elements(), shape.width) << kWhat;
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(
          LayerNorm(backend.Begin(), shape, a.inputs[0].data<T>(), a.inputs[1].data<float>(),
                    a.inputs[2].data<float>(), epsilon, a.outputs[0].data<T>(),
                    a.outputs[1].data<float>(), a.outputs[2].data<float>()),
          kWhat);
    });
  });
}

absl::StatusOr<Kernel> InputGradient(KernelBackend& backend, const Call& call, const CallTypes&,
                                     DType) {
  const bool adds = AttributesOf<LayerNormGradientAttributes>(call).residual;
  return Kernel([&backend, adds](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "layer_norm_input_gradient";
    const Tensor& residual = a.inputs[adds ? 5 : 0];
    CHECK_EQ(residual.elements(), a.outputs[0].elements()) << kWhat;
    const DType type = TypeOf(kWhat, {&a.inputs[0], &a.inputs[1], &a.outputs[0], &residual});
    WithType(type, [&]<typename T>(T) {
      backend.Note(
          LayerNormBackwardInput<T>(backend.Begin(), ShapeOf(a.inputs[1]), a.inputs[0].data<T>(),
                                    a.inputs[1].data<T>(), a.inputs[2].data<float>(),
                                    a.inputs[3].data<float>(), a.inputs[4].data<float>(),
                                    adds ? residual.data<T>() : nullptr, a.outputs[0].data<T>()),
          kWhat);
    });
  });
}

absl::StatusOr<Kernel> WeightGradient(KernelBackend& backend, const Call&, const CallTypes&,
                                      DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "layer_norm_weight_gradient";
    const LayerNormShape shape = ShapeOf(a.inputs[1]);
    const cudaStream_t stream = backend.Begin();
    const size_t bytes = PlanColumnSum(shape.rows, shape.width, 2, 1).scratch_bytes;
    auto* const scratch = static_cast<float*>(backend.Scratch(bytes, kWhat));
    if (scratch == nullptr) return;
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.inputs[1]}), [&]<typename T>(T) {
      backend.Note(
          LayerNormBackwardWeight(stream, shape, a.inputs[0].data<T>(), a.inputs[1].data<T>(),
                                  a.inputs[2].data<float>(), a.inputs[3].data<float>(),
                                  a.adds[0].data<float>(), a.adds[1].data<float>(), scratch),
          kWhat);
    });
  });
}

}  // namespace

KernelList LayerNormKernels() {
  return {{"layer_norm", Forward},
          {"layer_norm_input_gradient", InputGradient},
          {"layer_norm_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::cuda
