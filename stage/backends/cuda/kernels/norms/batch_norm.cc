#include "stage/backends/cuda/kernels/norms/batch_norm.h"

#include "operations/norms/batch_norm.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/launch_config.h"

namespace stagecoach::cuda {
namespace {

ChannelShape ShapeOf(const Tensor& x, const Tensor& by_channel) {
  const int64_t channels = by_channel.elements();
  return {x.elements() / channels, channels};
}

// Null where there is no memory, which is noted.
float* ScratchOf(KernelBackend& backend, const ChannelShape& shape, const char* what) {
  const size_t bytes = PlanColumnSum(shape.rows, shape.channels, 1, 1).scratch_bytes;
  return static_cast<float*>(backend.Scratch(bytes, what));
}

absl::StatusOr<Kernel> Forward(KernelBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto epsilon = static_cast<float>(AttributesOf<BatchNormAttributes>(call).epsilon);
  return Kernel([&backend, epsilon](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "batch_norm";
    const ChannelShape shape = ShapeOf(a.inputs[0], a.inputs[1]);
    const cudaStream_t stream = backend.Begin();
    float* const scratch = ScratchOf(backend, shape, kWhat);
    if (scratch == nullptr) return;
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(BatchNorm(stream, shape, a.inputs[0].data<T>(), a.inputs[1].data<float>(),
                             a.inputs[2].data<float>(), epsilon, a.outputs[0].data<T>(),
                             a.outputs[1].data<float>(), a.outputs[2].data<float>(),
                             a.outputs[3].data<float>(), scratch),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> Sums(KernelBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "batch_norm_sums";
    const ChannelShape shape = ShapeOf(a.inputs[0], a.inputs[2]);
    const cudaStream_t stream = backend.Begin();
    float* const scratch = ScratchOf(backend, shape, kWhat);
    if (scratch == nullptr) return;
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.inputs[1]}), [&]<typename T>(T) {
      backend.Note(BatchNormSums(stream, shape, a.inputs[0].data<T>(), a.inputs[1].data<T>(),
                                 a.inputs[2].data<float>(), a.inputs[3].data<float>(),
                                 a.outputs[0].data<float>(), a.outputs[1].data<float>(), scratch),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> InputGradient(KernelBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "batch_norm_input_gradient";
    const BatchNormFactors factors = {a.inputs[2].data<float>(), a.inputs[3].data<float>(),
                                      a.inputs[4].data<float>(), a.inputs[5].data<float>(),
                                      a.inputs[6].data<float>()};
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.inputs[1], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(BatchNormInputGradient(backend.Begin(), ShapeOf(a.inputs[0], a.inputs[2]),
                                          factors, a.inputs[0].data<T>(), a.inputs[1].data<T>(),
                                          a.outputs[0].data<T>()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> Fixed(KernelBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto epsilon = static_cast<float>(AttributesOf<BatchNormFixedAttributes>(call).epsilon);
  return Kernel([&backend, epsilon](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "batch_norm_fixed";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(BatchNormFixed(backend.Begin(), ShapeOf(a.inputs[0], a.inputs[1]),
                                  a.inputs[0].data<T>(), a.inputs[1].data<float>(),
                                  a.inputs[2].data<float>(), a.inputs[3].data<float>(),
                                  a.inputs[4].data<float>(), epsilon, a.outputs[0].data<T>()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> Fold(KernelBackend& backend, const Call& call, const CallTypes&, DType) {
  const int64_t places = AttributesOf<BatchNormFoldAttributes>(call).places;
  return Kernel([&backend, places](const KernelContext& context, const KernelArguments& a) {
    const ChannelShape shape = {context.run.sequences * places, a.inputs[0].elements()};
    backend.Note(BatchNormFold(backend.Begin(), shape, a.inputs[0].data<float>(),
                               a.inputs[1].data<float>(), a.adds[0].data<double>()),
                 "batch_norm_fold");
  });
}

absl::StatusOr<Kernel> Commit(KernelBackend& backend, const Call& call, const CallTypes&, DType) {
  const double momentum = AttributesOf<BatchNormCommitAttributes>(call).momentum;
  return Kernel([&backend, momentum](const KernelContext&, const KernelArguments& a) {
    backend.Note(BatchNormCommit(backend.Begin(), a.adds[0].elements(), a.inputs[0].data<double>(),
                                 momentum, a.adds[0].data<float>(), a.adds[1].data<float>()),
                 "batch_norm_commit");
  });
}

}  // namespace

KernelList BatchNormKernels() {
  return {{"batch_norm", Forward},
          {"batch_norm_sums", Sums},
          {"batch_norm_input_gradient", InputGradient},
          {"batch_norm_fixed", Fixed},
          {"batch_norm_fold", Fold},
          {"batch_norm_commit", Commit}};
}

}  // namespace stagecoach::cuda
