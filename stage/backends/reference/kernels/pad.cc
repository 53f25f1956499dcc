#include "operations/images/pad.h"

#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Pad(ReferenceBackend&, const Call& call, const CallTypes& types, DType) {
  const auto by = AttributesOf<PadAttributes>(call);
  return Kernel([by, from = types.inputs[0].shape, to = types.outputs[0].shape](
                    const KernelContext& context, const KernelArguments& a) {
    const int64_t channels = to[2];
    const float* x = a.inputs[0].data<float>();
    float* y = a.outputs[0].data<float>();
    for (int64_t n = 0; n < context.run.sequences; ++n, x += from.elements()) {
      for (int64_t i = -by.top; i < to[0] - by.top; ++i) {
        for (int64_t j = -by.left; j < to[1] - by.left; ++j) {
          const bool inside = 0 <= i && i < from[0] && 0 <= j && j < from[1];
          for (int64_t c = 0; c < channels; ++c) {
            *y++ = inside ? x[(i * from[1] + j) * channels + c] : 0.0f;
          }
        }
      }
    }
  });
}

}  // namespace

KernelList PadKernels() { return {{"pad", Pad}}; }

}  // namespace stagecoach::reference
