#include "stage/backends/cuda/kernels/norms/rms_norm.h"

#include "base/errors/check.h"
#include "operations/norms/rms_norm.h"
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

// Where the operands stand: dy, x, weight, rstd, residual, and of the weights' part dy, x, rstd.
template <typename T>
NormGradients<T> OperandsOf(NormPart part, bool residual, const KernelArguments& a) {
  const RowsShape shape = RowsOf(a.inputs[1]);
  NormGradients<T> all = {.rows = shape.rows,
                          .width = shape.width,
                          .dy = a.inputs[0].data<T>(),
                          .x = a.inputs[1].data<T>(),
                          .rstd = a.inputs[part == NormPart::kWeight ? 2 : 3].data<float>()};
  if (part != NormPart::kWeight) {
    all.weight = a.inputs[2].data<float>();
    all.residual = residual ? a.inputs[4].data<T>() : nullptr;
    all.dx = a.outputs[0].data<T>();
  }
  if (part != NormPart::kInput) all.d_weight = a.adds[0].data<float>();
  return all;
}

constexpr const char* NameOf(NormPart part) {
  if (part == NormPart::kBoth) return "rms_norm_gradient";
  return part == NormPart::kInput ? "rms_norm_input_gradient" : "rms_norm_weight_gradient";
}

template <NormPart kPart>
absl::StatusOr<Kernel> Gradient(KernelBackend& backend, const Call& call, const CallTypes&, DType) {
  bool residual = false;
  if constexpr (kPart != NormPart::kWeight) {
    residual = AttributesOf<RmsNormGradientAttributes>(call).residual;
  }
  return Kernel([&backend, residual](const KernelContext&, const KernelArguments& a) {
    constexpr const char* kWhat = NameOf(kPart);
    const Tensor& same = kPart == NormPart::kWeight ? a.inputs[1] : a.outputs[0];
    const Tensor& addend = a.inputs[residual ? 4 : 0];
    CHECK_EQ(addend.elements(), same.elements()) << kWhat;
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.inputs[1], &same, &addend}), [&]<typename T>(T) {
      const NormGradients<T> all = OperandsOf<T>(kPart, residual, a);
      const cudaStream_t stream = backend.Begin();
      void* scratch = nullptr;
      if (kPart != NormPart::kInput) {
        constexpr int kPerThread = 16 / sizeof(T);
        const auto plan = PlanNormBackward(all.rows, all.width, 1, kPerThread);
        scratch = backend.Scratch(plan.scratch_bytes, kWhat);
        if (scratch == nullptr) return;
      }
      backend.Note(RmsNormBackward(stream, kPart, all, static_cast<float*>(scratch)), kWhat);
    });
  });
}

}  // namespace

KernelList RmsNormKernels() {
  return {{"rms_norm", Forward},
          {"rms_norm_input_gradient", Gradient<NormPart::kInput>},
          {"rms_norm_weight_gradient", Gradient<NormPart::kWeight>},
          {"rms_norm_gradient", Gradient<NormPart::kBoth>}};
}

}  // namespace stagecoach::cuda
