#include "stage/backends/cuda/kernels/attention/embedding.h"

#include "base/errors/check.h"
#include "operations/attention/embedding.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"

namespace stagecoach::cuda {
namespace {

// `table`: of tokens, or its gradient.
EmbeddingShape ShapeOf(const Tensor& ids, const Tensor& table, int64_t context) {
  CHECK_GT(context, 0) << "embedding";
  return {ids.elements(), table.shape()[1], context, table.shape()[0]};
}

absl::StatusOr<Kernel> Forward(KernelBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const bool positions = !AttributesOf<EmbeddingAttributes>(call).tokens_only;
  const int64_t context = types.inputs[0].shape[0];
  return Kernel([&backend, positions, context](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "embedding";
    const Tensor &table = a.inputs[1], &positioned = a.inputs[positions ? 2 : 1];
    WithType(TypeOf(kWhat, {&table, &positioned, &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(Embedding(backend.Begin(), ShapeOf(a.inputs[0], table, context),
                             a.inputs[0].data<int32_t>(), table.data<T>(),
                             positions ? positioned.data<T>() : nullptr, a.outputs[0].data<T>()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> WeightGradient(KernelBackend& backend, const Call& call,
                                      const CallTypes& types, DType) {
  const bool positions = !AttributesOf<EmbeddingAttributes>(call).tokens_only;
  const int64_t context = types.inputs[0].shape[0];
  return Kernel([&backend, positions, context](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "embedding_weight_gradient";
    WithType(TypeOf(kWhat, {&a.inputs[1]}), [&]<typename T>(T) {
      backend.Note(
          EmbeddingBackward(backend.Begin(), ShapeOf(a.inputs[0], a.adds[0], context),
                            a.inputs[0].data<int32_t>(), a.inputs[1].data<T>(),
                            a.adds[0].data<float>(), positions ? a.adds[1].data<float>() : nullptr),
          kWhat);
    });
  });
}

}  // namespace

KernelList EmbeddingKernels() {
  return {{"embedding", Forward}, {"embedding_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::cuda
