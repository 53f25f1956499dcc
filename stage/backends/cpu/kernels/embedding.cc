// Rows of tables; their gradients in ascending order, a task a range of columns
// (operations/attention/embedding.h).
#include "operations/attention/embedding.h"

#include <algorithm>

#include "base/errors/check.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/kernels.h"

namespace stagecoach::cpu {
namespace {

constexpr int64_t kGradientColumns = 64;  // of a task

absl::StatusOr<Kernel> Embedding(CpuBackend& backend, const Call& call, const CallTypes& types,
                                 DType) {
  const bool positions = !AttributesOf<EmbeddingAttributes>(call).tokens_only;
  const int64_t context = types.inputs[0].shape[0];
  return Kernel([&backend, positions, context](const KernelContext&, const KernelArguments& a) {
    const Tensor& table = a.inputs[1];
    const int64_t width = table.shape()[1];
    const int32_t* ids = a.inputs[0].data<int32_t>();
    const FloatInput token(table), position(a.inputs[positions ? 2 : 1]);
    const FloatOutput y(a.outputs[0]);
    backend.ForEachPiece(
        a.outputs[0], kSmallRowBlock, width, 2,
        [&](int64_t first, int64_t count, const Room& room) {
          for (int64_t r = first; r < first + count; ++r) {
            CHECK(ids[r] >= 0 && ids[r] < table.shape()[0]) << "token id " << ids[r];
            const float* row = token.Read(ids[r] * width, width, room[0]);
            float* sum = y.At(r * width, room[0]);
            if (positions) {
              AddRows(row, position.Read(r % context * width, width, room[1]), sum, width);
            } else if (row != sum) {
              std::copy_n(row, width, sum);
            }
            y.Finish(r * width, width, room[0]);
          }
        });
  });
}

absl::StatusOr<Kernel> WeightGradient(CpuBackend& backend, const Call& call, const CallTypes& types,
                                      DType) {
  const bool positions = !AttributesOf<EmbeddingAttributes>(call).tokens_only;
  const int64_t context = types.inputs[0].shape[0];
  return Kernel([&backend, positions, context](const KernelContext&, const KernelArguments& a) {
    const int64_t rows = a.inputs[0].elements(), width = a.adds[0].shape()[1];
    const int64_t vocabulary = a.adds[0].shape()[0];
    const int32_t* ids = a.inputs[0].data<int32_t>();
    const FloatInput dy(a.inputs[1]);
    float* const token = a.adds[0].data<float>();
    float* const position = positions ? a.adds[1].data<float>() : nullptr;
    backend.ForEachBlock(width, kGradientColumns, [&](int64_t first, int64_t count, int) {
      float room[kGradientColumns];
      for (int64_t r = 0; r < rows; ++r) {
        CHECK(ids[r] >= 0 && ids[r] < vocabulary) << "token id " << ids[r];
        const float* gradient = dy.Read(r * width + first, count, room);
        AddTo(gradient, token + ids[r] * width + first, count);
        if (position == nullptr) continue;
        AddTo(gradient, position + r % context * width + first, count);
      }
    });
  });
}

}  // namespace

KernelList EmbeddingKernels() {
  return {{"embedding", Embedding}, {"embedding_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::cpu
