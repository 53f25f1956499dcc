#include "stage/backends/cuda/kernels/attention/cached_attention.h"

#include "operations/attention/cached_attention.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"

namespace stagecoach::cuda {
namespace {

absl::StatusOr<Kernel> Prepare(KernelBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const CachedHeads heads = CachedHeadsOf(AttributesOf<CachedAttentionAttributes>(call), types);
  return Kernel([&backend, heads](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "cached_attention";
    const CachedAttentionShape shape{a.inputs[1].elements(), heads.heads,   heads.key_heads,
                                     heads.head_width,       heads.context, heads.pool};
    const DType type = TypeOf(kWhat, {&a.inputs[0], &a.adds[0], &a.adds[1], &a.outputs[0]});
    WithType(type, [&]<typename T>(T) {
      const CachedAttentionArrays<T> arrays = {
          a.inputs[0].data<T>(),       a.inputs[1].data<int32_t>(), a.inputs[2].data<int32_t>(),
          a.inputs[3].data<int32_t>(), a.adds[0].data<T>(),         a.adds[1].data<T>(),
          a.outputs[0].data<T>()};
      backend.Note(CachedAttention(backend.Begin(), shape, arrays), kWhat);
    });
  });
}

}  // namespace

KernelList CachedAttentionKernels() { return {{"cached_attention", Prepare}}; }

}  // namespace stagecoach::cuda
