// One random word a sample (operations/pointwise/drop_path.h).
#include "operations/pointwise/drop_path.h"

#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> DropPath(ReferenceBackend&, const Call& call, const CallTypes& types,
                                DType) {
  const auto attributes = AttributesOf<DropPathAttributes>(call);
  const int64_t each = TypeElements(types.inputs[0], 1);
  return Kernel([attributes, each](const KernelContext& context, const KernelArguments& a) {
    const RandomStream stream = context.Stream(attributes.draw);
    const uint32_t threshold = DropoutThreshold(attributes.rate);
    const float scale = static_cast<float>(1.0 / (1.0 - attributes.rate));
    const float* x = a.inputs[0].data<float>();
    float* y = a.outputs[0].data<float>();
    for (int64_t i = 0; i < a.inputs[0].elements(); ++i) {
      const bool keep = RandomBits(stream, static_cast<uint64_t>(i / each)) >= threshold;
      y[i] = keep ? x[i] * scale : 0.0f;
    }
  });
}

}  // namespace

KernelList DropPathKernels() { return {{"drop_path", DropPath}}; }

}  // namespace stagecoach::reference
