#include "stage/backends/cuda/kernels/norms/group_norm.h"

#include "operations/norms/group_norm.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/launch_config.h"

namespace stagecoach::cuda {
namespace {

// Of x, for a micro-batch of so many elements.
struct Groups {
  int64_t places, channels, groups;
  Groups(const ValueType& x, const ValueType& mean)
      : places(x.shape.elements() / x.shape.back()),
        channels(x.shape.back()),
        groups(mean.shape.back()) {}
  GroupShape Of(const Tensor& x) const {
    return {x.elements() / (places * channels), places, channels, groups};
  }
};

absl::StatusOr<Kernel> Forward(KernelBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const auto epsilon = static_cast<float>(AttributesOf<GroupNormAttributes>(call).epsilon);
  const Groups groups(types.inputs[0], types.outputs[1]);
  return Kernel([&backend, epsilon, groups](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "group_norm";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(
          GroupNorm(backend.Begin(), groups.Of(a.inputs[0]), a.inputs[0].data<T>(),
                    a.inputs[1].data<float>(), a.inputs[2].data<float>(), epsilon,
                    a.outputs[0].data<T>(), a.outputs[1].data<float>(), a.outputs[2].data<float>()),
          kWhat);
    });
  });
}

absl::StatusOr<Kernel> Sums(KernelBackend& backend, const Call&, const CallTypes& types, DType) {
  const Groups groups(types.inputs[0], types.inputs[2]);
  return Kernel([&backend, groups](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "group_norm_sums";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.inputs[1]}), [&]<typename T>(T) {
      backend.Note(
          GroupNormSums(backend.Begin(), groups.Of(a.inputs[0]), a.inputs[0].data<T>(),
                        a.inputs[1].data<T>(), a.inputs[2].data<float>(), a.inputs[3].data<float>(),
                        a.outputs[0].data<float>(), a.outputs[1].data<float>()),
          kWhat);
    });
  });
}

absl::StatusOr<Kernel> InputGradient(KernelBackend& backend, const Call&, const CallTypes& types,
                                     DType) {
  const Groups groups(types.inputs[0], types.inputs[3]);
  return Kernel([&backend, groups](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "group_norm_input_gradient";
    const GroupNormFactors factors = {a.inputs[2].data<float>(), a.inputs[3].data<float>(),
                                      a.inputs[4].data<float>(), a.inputs[5].data<float>(),
                                      a.inputs[6].data<float>()};
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.inputs[1], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(GroupNormInputGradient(backend.Begin(), groups.Of(a.inputs[0]), factors,
                                          a.inputs[0].data<T>(), a.inputs[1].data<T>(),
                                          a.outputs[0].data<T>()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> WeightGradient(KernelBackend& backend, const Call&, const CallTypes&,
                                      DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "group_norm_weight_gradient";
    const int64_t channels = a.adds[0].elements();
    const GroupShape shape = {a.inputs[0].elements() / channels, 1, channels, 1};
    const cudaStream_t stream = backend.Begin();
    const size_t bytes = PlanColumnSum(shape.samples, channels, 1, 1).scratch_bytes;
    auto* const scratch = static_cast<float*>(backend.Scratch(bytes, kWhat));
    if (scratch == nullptr) return;
    for (const size_t of : {size_t{0}, size_t{1}}) {
      backend.Note(GroupNormWeightGradient(stream, shape, a.inputs[of].data<float>(),
                                           a.adds[of].data<float>(), scratch),
                   kWhat);
    }
  });
}

}  // namespace

KernelList GroupNormKernels() {
  return {{"group_norm", Forward},
          {"group_norm_sums", Sums},
          {"group_norm_input_gradient", InputGradient},
          {"group_norm_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::cuda
