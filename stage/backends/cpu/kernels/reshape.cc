#include <algorithm>
#include <cstring>

#include "stage/backends/cpu/kernel_list.h"

namespace stagecoach::cpu {
namespace {

constexpr int64_t kPieceBytes = 1 << 16;

absl::StatusOr<Kernel> Reshape(CpuBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    const Tensor &x = a.inputs[0], &y = a.outputs[0];
    const int64_t bytes = y.bytes();
    if (bytes == 0 || y.raw() == x.raw()) return;
    const int64_t pieces = (bytes + kPieceBytes - 1) / kPieceBytes;
    backend.ForEachBlock(pieces, 1, [&](int64_t first, int64_t count, int) {
      const int64_t begin = first * kPieceBytes;
      const int64_t end = std::min(bytes, (first + count) * kPieceBytes);
      std::memcpy(y.raw() + begin, x.raw() + begin, static_cast<size_t>(end - begin));
    });
  });
}

}  // namespace

KernelList ReshapeKernels() { return {{"reshape", Reshape}}; }

}  // namespace stagecoach::cpu
