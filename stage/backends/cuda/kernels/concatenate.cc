#include "stage/backends/cuda/kernels/concatenate.h"

#include "operations/concatenate.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"

namespace stagecoach::cuda {
namespace {

// Columns [from_begin, from_begin + columns) of each row of x become columns [to_begin, ...) of y.
void Copy(KernelBackend& backend, const char* what, const Tensor& x, int64_t from_begin,
          const Tensor& y, int64_t to_begin, int64_t columns) {
  const int64_t from = x.shape().back(), to = y.shape().back();
  WithType(TypeOf(what, {&x, &y}), [&]<typename T>(T) {
    backend.Note(CopyColumns(backend.Begin(), {y.elements() / to, columns, from, to},
                             x.data<T>() + from_begin, y.data<T>() + to_begin),
                 what);
  });
}

absl::StatusOr<Kernel> Concatenate(KernelBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    int64_t begin = 0;
    for (size_t i = 0; i < a.inputs.size(); ++i) {
      const int64_t columns = a.inputs[i].shape().back();
      Copy(backend, "concatenate", a.inputs[i], 0, a.outputs[0], begin, columns);
      begin += columns;
    }
  });
}

absl::StatusOr<Kernel> Slice(KernelBackend& backend, const Call& call, const CallTypes&, DType) {
  return Kernel([&backend, slice = AttributesOf<SliceAttributes>(call)](const KernelContext&,
                                                                        const KernelArguments& a) {
    Copy(backend, "slice", a.inputs[0], slice.begin, a.outputs[0], 0, slice.extent);
  });
}

absl::StatusOr<Kernel> SliceGradient(KernelBackend& backend, const Call& call, const CallTypes&,
                                     DType) {
  return Kernel([&backend, begin = AttributesOf<SliceGradientAttributes>(call).begin](
                    const KernelContext&, const KernelArguments& a) {
    backend.Fill(a.outputs[0], 0.0f);
    Copy(backend, "slice_gradient", a.inputs[0], 0, a.outputs[0], begin,
         a.inputs[0].shape().back());
  });
}

}  // namespace

KernelList ConcatenateKernels() {
  return {{"concatenate", Concatenate}, {"slice", Slice}, {"slice_gradient", SliceGradient}};
}

}  // namespace stagecoach::cuda
