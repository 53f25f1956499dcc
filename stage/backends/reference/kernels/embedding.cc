// Rows of tables, and their gradients in ascending order (operations/attention/embedding.h).
#include "operations/attention/embedding.h"

#include <algorithm>

#include "base/errors/check.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Embedding(ReferenceBackend&, const Call& call, const CallTypes& types,
                                 DType) {
  const bool positions = !AttributesOf<EmbeddingAttributes>(call).tokens_only;
  const int64_t context = types.inputs[0].shape[0];
  return Kernel([positions, context](const KernelContext&, const KernelArguments& a) {
    const Tensor &ids = a.inputs[0], &table = a.inputs[1];
    const int64_t rows = ids.elements(), width = table.shape()[1];
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t id = ids.data<int32_t>()[r];
      CHECK(id >= 0 && id < table.shape()[0]) << "token id " << id;
      float* y = a.outputs[0].data<float>() + r * width;
      std::copy_n(table.data<float>() + id * width, width, y);
      if (!positions) continue;
      const float* position = a.inputs[2].data<float>() + r % context * width;
      for (int64_t i = 0; i < width; ++i) y[i] += position[i];
    }
  });
}

absl::StatusOr<Kernel> WeightGradient(ReferenceBackend&, const Call& call, const CallTypes& types,
                                      DType) {
  const bool positions = !AttributesOf<EmbeddingAttributes>(call).tokens_only;
  const int64_t context = types.inputs[0].shape[0];
  return Kernel([positions, context](const KernelContext&, const KernelArguments& a) {
    const int64_t rows = a.inputs[0].elements(), width = a.adds[0].shape()[1];
    for (int64_t r = 0; r < rows; ++r) {
      const float* dy = a.inputs[1].data<float>() + r * width;
      float* token = a.adds[0].data<float>() + a.inputs[0].data<int32_t>()[r] * width;
      for (int64_t i = 0; i < width; ++i) token[i] += dy[i];
      if (!positions) continue;
      float* position = a.adds[1].data<float>() + r % context * width;
      for (int64_t i = 0; i < width; ++i) position[i] += dy[i];
    }
  });
}

}  // namespace

KernelList EmbeddingKernels() {
  return {{"embedding", Embedding}, {"embedding_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::reference
