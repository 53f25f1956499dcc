#include "operations/concatenate.h"

#include <cstring>

#include "stage/backends/cpu/kernel_list.h"

namespace stagecoach::cpu {
namespace {

// Columns [from_begin, from_begin + columns) of each row of x become columns [to_begin, ...) of y.
void CopyColumns(CpuBackend& backend, const Tensor& x, int64_t from_begin, const Tensor& y,
                 int64_t to_begin, int64_t columns) {
  const int64_t size = DTypeSize(y.dtype()), to = y.shape().back() * size;
  const int64_t from = x.shape().back() * size;
  backend.ForEachBlock(y.bytes() / to, kSmallRowBlock, [&](int64_t first, int64_t count, int) {
    for (int64_t r = first; r < first + count; ++r) {
      std::memcpy(y.raw() + r * to + to_begin * size, x.raw() + r * from + from_begin * size,
                  static_cast<size_t>(columns * size));
    }
  });
}

absl::StatusOr<Kernel> Concatenate(CpuBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    int64_t begin = 0;
    for (size_t i = 0; i < a.inputs.size(); ++i) {
      const int64_t columns = a.inputs[i].shape().back();
      CopyColumns(backend, a.inputs[i], 0, a.outputs[0], begin, columns);
      begin += columns;
    }
  });
}

absl::StatusOr<Kernel> Slice(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  return Kernel([&backend, slice = AttributesOf<SliceAttributes>(call)](const KernelContext&,
                                                                        const KernelArguments& a) {
    CopyColumns(backend, a.inputs[0], slice.begin, a.outputs[0], 0, slice.extent);
  });
}

absl::StatusOr<Kernel> SliceGradient(CpuBackend& backend, const Call& call, const CallTypes&,
                                     DType) {
  return Kernel([&backend, begin = AttributesOf<SliceGradientAttributes>(call).begin](
                    const KernelContext&, const KernelArguments& a) {
    backend.Fill(a.outputs[0], 0.0f);
    CopyColumns(backend, a.inputs[0], 0, a.outputs[0], begin, a.inputs[0].shape().back());
  });
}

}  // namespace

KernelList ConcatenateKernels() {
  return {{"concatenate", Concatenate}, {"slice", Slice}, {"slice_gradient", SliceGradient}};
}

}  // namespace stagecoach::cpu
