#include "operations/concatenate.h"

#include <algorithm>

#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

// Columns [from_begin, from_begin + columns) of each row of x become columns [to_begin, ...) of y.
void CopyColumns(const Tensor& x, int64_t from_begin, const Tensor& y, int64_t to_begin,
                 int64_t columns) {
  const int64_t from = x.shape().back(), to = y.shape().back();
  for (int64_t r = 0; r < y.elements() / to; ++r) {
    std::copy_n(x.data<float>() + r * from + from_begin, columns,
                y.data<float>() + r * to + to_begin);
  }
}

absl::StatusOr<Kernel> Concatenate(ReferenceBackend&, const Call&, const CallTypes&, DType) {
  return Kernel([](const KernelContext&, const KernelArguments& a) {
    int64_t begin = 0;
    for (size_t i = 0; i < a.inputs.size(); ++i) {
      const int64_t columns = a.inputs[i].shape().back();
      CopyColumns(a.inputs[i], 0, a.outputs[0], begin, columns);
      begin += columns;
    }
  });
}

absl::StatusOr<Kernel> Slice(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  return Kernel([slice = AttributesOf<SliceAttributes>(call)](const KernelContext&,
                                                              const KernelArguments& a) {
    CopyColumns(a.inputs[0], slice.begin, a.outputs[0], 0, slice.extent);
  });
}

absl::StatusOr<Kernel> SliceGradient(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  return Kernel([begin = AttributesOf<SliceGradientAttributes>(call).begin](
                    const KernelContext&, const KernelArguments& a) {
    std::fill_n(a.outputs[0].data<float>(), a.outputs[0].elements(), 0.0f);
    CopyColumns(a.inputs[0], 0, a.outputs[0], begin, a.inputs[0].shape().back());
  });
}

}  // namespace

KernelList ConcatenateKernels() {
  return {{"concatenate", Concatenate}, {"slice", Slice}, {"slice_gradient", SliceGradient}};
}

}  // namespace stagecoach::reference
