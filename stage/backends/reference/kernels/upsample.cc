// Pixel by pixel; sums in double (operations/images/upsample.h).
#include "operations/images/upsample.h"

#include <vector>

#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

// Calls body(element of the small image, element of the large one), the large one's in ascending
// order.
template <typename Body>
void ForEachPair(const Plane& times, const Shape& large, int64_t samples, Body body) {
  const int64_t channels = large[2], width = large[1] / times.width;
  int64_t element = 0;
  for (int64_t row = 0; row < samples * large[0]; ++row) {
    for (int64_t column = 0; column < large[1]; ++column) {
      const int64_t pixel = row / times.height * width + column / times.width;
      for (int64_t c = 0; c < channels; ++c) body(pixel * channels + c, element++);
    }
  }
}

absl::StatusOr<Kernel> Forward(ReferenceBackend&, const Call& call, const CallTypes& types, DType) {
  const Plane times = AttributesOf<UpsampleAttributes>(call).times;
  return Kernel(
      [times, to = types.outputs[0].shape](const KernelContext& context, const KernelArguments& a) {
        const float* x = a.inputs[0].data<float>();
        float* y = a.outputs[0].data<float>();
        ForEachPair(times, to, context.run.sequences,
                    [&](int64_t small, int64_t large) { y[large] = x[small]; });
      });
}

absl::StatusOr<Kernel> Gradient(ReferenceBackend&, const Call& call, const CallTypes& types,
                                DType) {
  const Plane times = AttributesOf<UpsampleAttributes>(call).times;
  return Kernel([times, from = types.inputs[0].shape](const KernelContext& context,
                                                      const KernelArguments& a) {
    const float* dy = a.inputs[0].data<float>();
    std::vector<double> sums(a.outputs[0].elements(), 0.0);
    ForEachPair(times, from, context.run.sequences,
                [&](int64_t small, int64_t large) { sums[small] += dy[large]; });
    for (size_t i = 0; i < sums.size(); ++i) {
      a.outputs[0].data<float>()[i] = static_cast<float>(sums[i]);
    }
  });
}

}  // namespace

KernelList UpsampleKernels() { return {{"upsample", Forward}, {"upsample_gradient", Gradient}}; }

}  // namespace stagecoach::reference
