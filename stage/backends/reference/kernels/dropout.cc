// One random word an element (operations/pointwise/dropout.h).
#include "operations/pointwise/dropout.h"

#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Dropout(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  const auto attributes = AttributesOf<DropoutAttributes>(call);
  return Kernel([attributes](const KernelContext& context, const KernelArguments& a) {
    const RandomStream stream = context.Stream(attributes.draw);
    const uint32_t threshold = DropoutThreshold(attributes.rate);
    const float scale = static_cast<float>(1.0 / (1.0 - attributes.rate));
    const float* x = a.inputs[0].data<float>();
    float* y = a.outputs[0].data<float>();
    for (int64_t i = 0; i < a.inputs[0].elements(); ++i) {
      const bool keep = RandomBits(stream, static_cast<uint64_t>(i)) >= threshold;
      y[i] = keep ? x[i] * scale : 0.0f;
    }
  });
}

}  // namespace

KernelList DropoutKernels() { return {{"dropout", Dropout}}; }

}  // namespace stagecoach::reference
