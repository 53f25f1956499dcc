#include "stage/backends/cuda/kernels/losses/cross_entropy.h"

#include "base/errors/check.h"
#include "operations/losses/cross_entropy.h"
#include "operations/losses/loss_types.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"

namespace stagecoach::cuda {
namespace {

static_assert(kCountsOfAClass == kClassCounts);

absl::StatusOr<Kernel> Loss(KernelBackend& backend, const Call& call, const CallTypes&, DType) {
  return Kernel([&backend, attributes = AttributesOf<CrossEntropyAttributes>(call)](
                    const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "cross_entropy";
    const bool gradient = attributes.gradient;
    const LossForm form{attributes.weighted, gradient};
    const LossRows shape = {a.inputs[1].elements(),
                            a.inputs[0].shape().back(),
                            attributes.label_smoothing,
                            attributes.ignore_index,
                            attributes.accuracy,
                            attributes.top,
                            static_cast<int>(attributes.sums()),
                            attributes.counts_classes(),
                            a.inputs[0].row_stride()};
    CHECK(!gradient || a.outputs[0].row_stride() == shape.stride) << "rows of " << kWhat;
    const cudaStream_t stream = backend.Begin();
    auto* const scratch = static_cast<double*>(backend.Scratch(LossScratch(shape), kWhat));
    if (scratch == nullptr) return;
    WithType(TypeOf(kWhat, {&a.inputs[0]}), [&]<typename T>(T) {
      backend.Note(
          CrossEntropyLoss<T>(stream, shape, a.inputs[0].rows<T>(), a.inputs[1].data<int32_t>(),
                              form.weighted ? a.inputs[2].data<float>() : nullptr,
                              gradient ? a.inputs[ScalePlace(form)].data<float>() : nullptr,
                              gradient ? a.outputs[0].rows<T>() : nullptr,
                              a.outputs[gradient ? 1 : 0].data<double>(), scratch),
          kWhat);
    });
  });
}

}  // namespace

KernelList CrossEntropyKernels() { return {{"cross_entropy", Loss}}; }

}  // namespace stagecoach::cuda
