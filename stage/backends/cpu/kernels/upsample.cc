// Pixel by pixel (operations/images/upsample.h).
#include "operations/images/upsample.h"

#include <cstring>

#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/kernels.h"

namespace stagecoach::cpu {
namespace {

absl::StatusOr<Kernel> Forward(CpuBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const Plane times = AttributesOf<UpsampleAttributes>(call).times;
  return Kernel([&backend, times, to = types.outputs[0].shape](const KernelContext& context,
                                                               const KernelArguments& a) {
    const int64_t pixel = to[2] * DTypeSize(a.inputs[0].dtype()), width = to[1] / times.width;
    const std::byte* const x = a.inputs[0].raw();
    std::byte* const y = a.outputs[0].raw();
    const auto rows = [&](int64_t first, int64_t count, int) {
      for (int64_t row = first; row < first + count; ++row) {
        const std::byte* const from = x + row / times.height * width * pixel;
        for (int64_t column = 0; column < to[1]; ++column) {
          std::memcpy(y + (row * to[1] + column) * pixel, from + column / times.width * pixel,
                      static_cast<size_t>(pixel));
        }
      }
    };
    backend.ForEachBlock(context.run.sequences * to[0], kSmallRowBlock, rows);
  });
}

absl::StatusOr<Kernel> Gradient(CpuBackend& backend, const Call& call, const CallTypes& types,
                                DType) {
  const Plane times = AttributesOf<UpsampleAttributes>(call).times;
  return Kernel([&backend, times, to = types.outputs[0].shape](const KernelContext&,
                                                               const KernelArguments& a) {
    const int64_t channels = to[2], line = to[1] * times.width;  // pixels of a row of dy
    const FloatInput dy(a.inputs[0]);
    const FloatOutput dx(a.outputs[0]);
    // A row of pieces is a pixel.
    const auto pixels = [&](int64_t first, int64_t count, const Room& room) {
      for (int64_t p = first; p < first + count; ++p) {
        float* const sum = dx.At(p * channels, room[0]);
        FillWith(sum, 0.0f, channels);
        const int64_t corner = p / to[1] * times.height * line + p % to[1] * times.width;
        for (int64_t u = 0; u < times.height; ++u) {
          for (int64_t v = 0; v < times.width; ++v) {
            AddTo(dy.Read((corner + u * line + v) * channels, channels, room[1]), sum, channels);
          }
        }
        dx.Finish(p * channels, channels, room[0]);
      }
    };
    backend.ForEachPiece(a.outputs[0], kSmallRowBlock, channels, 2, pixels);
  });
}

}  // namespace

KernelList UpsampleKernels() { return {{"upsample", Forward}, {"upsample_gradient", Gradient}}; }

}  // namespace stagecoach::cpu
