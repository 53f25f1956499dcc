#include "operations/images/pad.h"

#include <algorithm>
#include <cstring>

#include "stage/backends/cpu/kernel_list.h"

namespace stagecoach::cpu {
namespace {

// A row of y is zeros, a piece of a row of x, zeros; or zeros alone.
absl::StatusOr<Kernel> Pad(CpuBackend& backend, const Call& call, const CallTypes& types, DType) {
  const auto by = AttributesOf<PadAttributes>(call);
  const Shape from = types.inputs[0].shape, to = types.outputs[0].shape;
  const int64_t begin = std::clamp<int64_t>(by.left, 0, to[1]);
  const int64_t end = std::clamp<int64_t>(from[1] + by.left, begin, to[1]);
  return Kernel(
      [&backend, by, from, to, begin, end](const KernelContext& context, const KernelArguments& a) {
        const int64_t pixel = to[2] * DTypeSize(a.inputs[0].dtype());
        const std::byte* const x = a.inputs[0].raw();
        std::byte* const y = a.outputs[0].raw();
        const auto rows = [&](int64_t first, int64_t count, int) {
          for (int64_t row = first; row < first + count; ++row) {
            std::byte* const out = y + row * to[1] * pixel;
            const int64_t i = row % to[0] - by.top;
            const bool inside = 0 <= i && i < from[0] && begin < end;
            const int64_t left = inside ? begin : to[1], right = inside ? end : to[1];
            std::memset(out, 0, static_cast<size_t>(left * pixel));
            std::memset(out + right * pixel, 0, static_cast<size_t>((to[1] - right) * pixel));
            if (!inside) continue;
            const int64_t place = (row / to[0] * from[0] + i) * from[1] + begin - by.left;
            std::memcpy(out + begin * pixel, x + place * pixel,
                        static_cast<size_t>((end - begin) * pixel));
          }
        };
        backend.ForEachBlock(context.run.sequences * to[0], kSmallRowBlock, rows);
      });
}

}  // namespace

KernelList PadKernels() { return {{"pad", Pad}}; }

}  // namespace stagecoach::cpu
