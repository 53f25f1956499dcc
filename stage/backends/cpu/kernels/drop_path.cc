// One random word a sample (operations/pointwise/drop_path.h). Bound by memory: the compiler's
// vectors are enough.
#include "operations/pointwise/drop_path.h"

#include <algorithm>

#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"

namespace stagecoach::cpu {
namespace {

struct DropPathRule {
  RandomStream stream;
  uint32_t threshold;
  float scale;
  int64_t each;  // elements of a sample
};

// Elements [first, first + count) of all samples, the first of them at x and y; y may be x.
void DropPathRange(const DropPathRule& rule, const float* x, float* y, int64_t first,
                   int64_t count) {
  for (int64_t done = 0; done < count;) {  // up to the end of a sample
    const int64_t sample = (first + done) / rule.each;
    const int64_t end = std::min(count, (sample + 1) * rule.each - first);
    if (RandomBits(rule.stream, static_cast<uint64_t>(sample)) >= rule.threshold) {
      for (int64_t i = done; i < end; ++i) y[i] = x[i] * rule.scale;
    } else {
      std::fill(y + done, y + end, 0.0f);
    }
    done = end;
  }
}

absl::StatusOr<Kernel> DropPath(CpuBackend& backend, const Call& call, const CallTypes& types,
                                DType) {
  const auto attributes = AttributesOf<DropPathAttributes>(call);
  const int64_t each = TypeElements(types.inputs[0], 1);
  return Kernel([&backend, attributes, each](const KernelContext& context,
                                             const KernelArguments& a) {
    const DropPathRule rule = {context.Stream(attributes.draw), DropoutThreshold(attributes.rate),
                               static_cast<float>(1.0 / (1.0 - attributes.rate)), each};
    const FloatInput x(a.inputs[0]);
    const FloatOutput y(a.outputs[0]);
    backend.ForEachPiece(
        a.inputs[0], kElementBlock, 1, 1, [&](int64_t first, int64_t count, const Room& room) {
          DropPathRange(rule, x.Read(first, count, room[0]), y.At(first, room[0]), first, count);
          y.Finish(first, count, room[0]);
        });
  });
}

}  // namespace

KernelList DropPathKernels() { return {{"drop_path", DropPath}}; }

}  // namespace stagecoach::cpu
