#include "stage/backends/cuda/kernels/losses/mean_squared_error.h"

#include "operations/losses/loss_types.h"
#include "operations/losses/mean_squared_error.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"

namespace stagecoach::cuda {
namespace {

absl::StatusOr<Kernel> Loss(KernelBackend& backend, const Call& call, const CallTypes&, DType) {
  return Kernel([&backend, attributes = AttributesOf<MeanSquaredErrorAttributes>(call)](
                    const KernelContext&, const KernelArguments& a) {
    const LossForm form{attributes.weighted, attributes.gradient};
    constexpr char kWhat[] = "mean_squared_error";
    const int64_t n = a.inputs[0].elements();
    const int64_t numbers = form.weighted ? n / a.inputs[2].elements() : n;
    const cudaStream_t stream = backend.Begin();
    const auto blocks = static_cast<size_t>(SquaredErrorBlocks(n));
    auto* const scratch = static_cast<double*>(backend.Scratch(2 * blocks * sizeof(double), kWhat));
    if (scratch == nullptr) return;
    WithType(TypeOf(kWhat, {&a.inputs[0]}), [&]<typename T>(T) {
      backend.Note(
          SquaredError<T>(stream, n, numbers, a.inputs[0].data<T>(), a.inputs[1].data<float>(),
                          form.weighted ? a.inputs[2].data<float>() : nullptr,
                          form.gradient ? a.inputs[ScalePlace(form)].data<float>() : nullptr,
                          form.gradient ? a.outputs[0].data<T>() : nullptr,
                          a.outputs[form.gradient ? 1 : 0].data<double>(), scratch),
          kWhat);
    });
  });
}

}  // namespace

KernelList MeanSquaredErrorKernels() { return {{"mean_squared_error", Loss}}; }

}  // namespace stagecoach::cuda
