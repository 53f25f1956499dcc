#include "stage/backends/cuda/kernels/attention/head_norm.h"

#include <algorithm>

#include "operations/attention/head_norm.h"
#include "operations/attention/packed_heads.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/launch_config.h"

namespace stagecoach::cuda {
namespace {

template <typename Attributes>
PackedHeads HeadsOf(const Call& call, const CallTypes& types) {
  const auto attributes = AttributesOf<Attributes>(call);
  return PackedHeadsOf(types.inputs[0], attributes.heads, attributes.key_heads);
}

HeadNormShape ShapeOf(const PackedHeads& packed, const KernelContext& context) {
  return {context.run.sequences * packed.context, packed.heads, packed.key_heads,
          packed.head_width};
}

absl::StatusOr<Kernel> Forward(KernelBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const auto epsilon = static_cast<float>(AttributesOf<HeadNormAttributes>(call).epsilon);
  return Kernel([&backend, epsilon, packed = HeadsOf<HeadNormAttributes>(call, types)](
                    const KernelContext& context, const KernelArguments& a) {
    constexpr char kWhat[] = "head_norm";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(HeadNorm(backend.Begin(), ShapeOf(packed, context), a.inputs[0].data<T>(),
                            a.inputs[1].data<float>(), a.inputs[2].data<float>(), epsilon,
                            a.outputs[0].data<T>(), a.outputs[1].data<float>()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> InputGradient(KernelBackend& backend, const Call& call,
                                     const CallTypes& types, DType) {
  return Kernel([&backend, packed = HeadsOf<HeadNormGradientAttributes>(call, types)](
                    const KernelContext& context, const KernelArguments& a) {
    constexpr char kWhat[] = "head_norm_input_gradient";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.inputs[1], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(HeadNormInputGradient(backend.Begin(), ShapeOf(packed, context),
                                         a.inputs[0].data<T>(), a.inputs[1].data<T>(),
                                         a.inputs[2].data<float>(), a.inputs[3].data<float>(),
                                         a.inputs[4].data<float>(), a.outputs[0].data<T>()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> WeightGradient(KernelBackend& backend, const Call& call,
                                      const CallTypes& types, DType) {
  return Kernel([&backend, packed = HeadsOf<HeadNormGradientAttributes>(call, types)](
                    const KernelContext& context, const KernelArguments& a) {
    constexpr char kWhat[] = "head_norm_weight_gradient";
    const HeadNormShape shape = ShapeOf(packed, context);
    const cudaStream_t stream = backend.Begin();
    size_t bytes = 0;
    for (const int64_t heads : {shape.queries, shape.keys}) {
      bytes =
          std::max(bytes, PlanColumnSum(shape.rows * heads, shape.head_width, 1, 1).scratch_bytes);
    }
    auto* const scratch = static_cast<float*>(backend.Scratch(bytes, kWhat));
    if (scratch == nullptr) return;
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.inputs[1]}), [&]<typename T>(T) {
      backend.Note(
          HeadNormWeightGradient(stream, shape, a.inputs[0].data<T>(), a.inputs[1].data<T>(),
                                 a.inputs[2].data<float>(), a.adds[0].data<float>(),
                                 a.adds[1].data<float>(), scratch),
          kWhat);
    });
  });
}

}  // namespace

KernelList HeadNormKernels() {
  return {{"head_norm", Forward},
          {"head_norm_input_gradient", InputGradient},
          {"head_norm_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::cuda
