// Row by row; the gradients in ascending order of the samples, a task some positions
// (operations/attention/prepend_token.h).
#include "operations/attention/prepend_token.h"

#include <algorithm>

#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/kernels.h"

namespace stagecoach::cpu {
namespace {

constexpr int64_t kColumnsAtOnce = 256;  // of a row of dy, widened

absl::StatusOr<Kernel> Forward(CpuBackend& backend, const Call&, const CallTypes& types, DType) {
  const Shape to = types.outputs[0].shape;
  return Kernel(
      [&backend, rows = to[0], width = to[1]](const KernelContext&, const KernelArguments& a) {
        const FloatInput x(a.inputs[0]), token(a.inputs[1]), position(a.inputs[2]);
        const FloatOutput y(a.outputs[0]);
        backend.ForEachPiece(a.outputs[0], kSmallRowBlock, width, 2,
                             [&](int64_t first, int64_t count, const Room& room) {
                               for (int64_t r = first; r < first + count; ++r) {
                                 const int64_t sample = r / rows, place = r % rows;
                                 const float* row =
                                     place == 0 ? token.Read(0, width, room[0])
                                                : x.Read((sample * (rows - 1) + place - 1) * width,
                                                         width, room[0]);
                                 AddRows(row, position.Read(place * width, width, room[1]),
                                         y.At(r * width, room[0]), width);
                                 y.Finish(r * width, width, room[0]);
                               }
                             });
      });
}

absl::StatusOr<Kernel> WeightGradient(CpuBackend& backend, const Call&, const CallTypes& types,
                                      DType) {
  const Shape from = types.inputs[0].shape;
  return Kernel([&backend, rows = from[0], width = from[1]](const KernelContext& context,
                                                            const KernelArguments& a) {
    const FloatInput dy(a.inputs[0]);
    float *token = a.adds[0].data<float>(), *position = a.adds[1].data<float>();
    backend.ForEachBlock(rows, kSmallRowBlock, [&](int64_t first, int64_t count, int) {
      float room[kColumnsAtOnce];
      for (int64_t n = 0; n < context.run.sequences; ++n) {
        for (int64_t r = first; r < first + count; ++r) {
          for (int64_t c = 0; c < width; c += kColumnsAtOnce) {
            const int64_t some = std::min(kColumnsAtOnce, width - c);
            const float* gradient = dy.Read((n * rows + r) * width + c, some, room);
            AddTo(gradient, position + r * width + c, some);
            if (r == 0) AddTo(gradient, token + c, some);
          }
        }
      }
    });
  });
}

}  // namespace

KernelList PrependTokenKernels() {
  return {{"prepend_token", Forward}, {"prepend_token_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::cpu
