#include "stage/backends/cuda/kernels/pointwise/drop_path.h"

#include "operations/pointwise/drop_path.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/random_stream.h"

namespace stagecoach::cuda {
namespace {

absl::StatusOr<Kernel> PrepareDropPath(KernelBackend& backend, const Call& call,
                                       const CallTypes& types, DType) {
  const auto attributes = AttributesOf<DropPathAttributes>(call);
  const int64_t each = TypeElements(types.inputs[0], 1);
  return Kernel(
      [&backend, attributes, each](const KernelContext& context, const KernelArguments& a) {
        constexpr char kWhat[] = "drop_path";
        WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
          backend.Note(DropPath(backend.Begin(), a.inputs[0].data<T>(), a.outputs[0].data<T>(),
                                a.inputs[0].elements(), each, RuleOf(attributes.rate),
                                StreamOf(context.Stream(attributes.draw))),
                       kWhat);
        });
      });
}

}  // namespace

KernelList DropPathKernels() { return {{"drop_path", PrepareDropPath}}; }

}  // namespace stagecoach::cuda
