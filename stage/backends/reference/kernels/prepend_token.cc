// Row by row; the gradients in ascending order of the samples
// (operations/attention/prepend_token.h).
#include "operations/attention/prepend_token.h"

#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Forward(ReferenceBackend&, const Call&, const CallTypes& types, DType) {
  const Shape to = types.outputs[0].shape;
  return Kernel(
      [rows = to[0], width = to[1]](const KernelContext& context, const KernelArguments& a) {
        const float *x = a.inputs[0].data<float>(), *position = a.inputs[2].data<float>();
        float* y = a.outputs[0].data<float>();
        for (int64_t n = 0; n < context.run.sequences; ++n) {
          for (int64_t r = 0; r < rows; ++r) {
            const float* row =
                r == 0 ? a.inputs[1].data<float>() : x + (n * (rows - 1) + r - 1) * width;
            for (int64_t i = 0; i < width; ++i) *y++ = row[i] + position[r * width + i];
          }
        }
      });
}

absl::StatusOr<Kernel> WeightGradient(ReferenceBackend&, const Call&, const CallTypes& types,
                                      DType) {
  const Shape from = types.inputs[0].shape;
  return Kernel(
      [rows = from[0], width = from[1]](const KernelContext& context, const KernelArguments& a) {
        const float* dy = a.inputs[0].data<float>();
        float *token = a.adds[0].data<float>(), *position = a.adds[1].data<float>();
        for (int64_t n = 0; n < context.run.sequences; ++n, dy += rows * width) {
          for (int64_t i = 0; i < width; ++i) token[i] += dy[i];
          for (int64_t i = 0; i < rows * width; ++i) position[i] += dy[i];
        }
      });
}

}  // namespace

KernelList PrependTokenKernels() {
  return {{"prepend_token", Forward}, {"prepend_token_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::reference
