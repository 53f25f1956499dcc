// Sums over all rows: a task owns a range of columns and walks the rows in order. BF16 columns are
// widened kSumRows rows at a time, which keeps the order of additions, hence the float32 bits.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "stage/backends/cpu/cpu_backend.h"
#include "stage/backends/cpu/float_view.h"

namespace stagecoach::cpu {
namespace {

constexpr int64_t kColumnBlock = 64;
constexpr int64_t kSumColumns = 128;  // of a bias: one operand, so more of them

}  // namespace

void CpuBackend::LayerNormBackwardWeight(const LayerNormBackwardWeightArgs& args) {
  const int64_t rows = args.x.shape()[0], width = args.x.shape()[1];
  const float *mean = args.mean.data<float>(), *rstd = args.rstd.data<float>();
  float *d_weight = args.d_weight.data<float>(), *d_bias = args.d_bias.data<float>();
  if (!IsBfloat16(args.x)) {
    const float *dy = args.dy.data<float>(), *x = args.x.data<float>();
    ForEachBlock(width, kColumnBlock, [&](int64_t first, int64_t count, int) {
      LayerNormBackwardColumns(dy + first, x + first, mean, rstd, d_weight + first, d_bias + first,
                               rows, width, count);
    });
    return;
  }
  constexpr int64_t kArea = kSumRows * kColumnBlock;
  if (!ReserveWorkers((2 * kArea + 2 * kColumnBlock) * static_cast<int64_t>(sizeof(float)))) return;
  const Bfloat16 *dy = args.dy.data<Bfloat16>(), *x = args.x.data<Bfloat16>();
  ForEachBlock(width, kColumnBlock, [&](int64_t first, int64_t count, int worker) {
    float *wide_dy = WorkerScratch(worker), *wide_x = wide_dy + kArea;
    float *sum_weight = wide_x + kArea, *sum_bias = sum_weight + kColumnBlock;
    std::fill_n(sum_weight, 2 * kColumnBlock, 0.0f);
    for (int64_t r = 0; r < rows; r += kSumRows) {
      const int64_t some = std::min(kSumRows, rows - r);
      WidenRows(dy + r * width + first, width, wide_dy, some, count);
      WidenRows(x + r * width + first, width, wide_x, some, count);
      LayerNormBackwardColumns(wide_dy, wide_x, mean + r, rstd + r, sum_weight, sum_bias, some,
                               count, count);
    }
    AddTo(sum_weight, d_weight + first, count);
    AddTo(sum_bias, d_bias + first, count);
  });
}

void CpuBackend::AddColumnSums(const Tensor& tensor, const Tensor& result) {
  const int64_t rows = tensor.shape()[0], columns = tensor.shape()[1];
  float* sums = result.data<float>();
  if (!IsBfloat16(tensor)) {
    const float* x = tensor.data<float>();
    ForEachBlock(columns, kSumColumns, [&](int64_t first, int64_t count, int) {
      ColumnSums(x + first, sums + first, rows, columns, count);
    });
    return;
  }
  constexpr int64_t kArea = kSumRows * kSumColumns;
  if (!ReserveWorkers((kArea + kSumColumns) * static_cast<int64_t>(sizeof(float)))) return;
  const Bfloat16* x = tensor.data<Bfloat16>();
  ForEachBlock(columns, kSumColumns, [&](int64_t first, int64_t count, int worker) {
    float *wide = WorkerScratch(worker), *total = wide + kArea;
    std::fill_n(total, kSumColumns, 0.0f);
    for (int64_t r = 0; r < rows; r += kSumRows) {
      const int64_t some = std::min(kSumRows, rows - r);
      WidenRows(x + r * columns + first, columns, wide, some, count);
      ColumnSums(wide, total, some, count, count);
    }
    AddTo(total, sums + first, count);
  });
}

void CpuBackend::EmbeddingBackward(const EmbeddingBackwardArgs& args) {
  const int64_t rows = args.ids.elements(), width = args.d_token.shape()[1];
  const int32_t* ids = args.ids.data<int32_t>();
  const FloatInput dy(args.dy);
  float* const token = args.d_token.data<float>();
  float* const position = args.d_position.valid() ? args.d_position.data<float>() : nullptr;
  ForEachBlock(width, kColumnBlock, [&](int64_t first, int64_t count, int) {
    float room[kColumnBlock];
    for (int64_t r = 0; r < rows; ++r) {
      CHECK(ids[r] >= 0 && ids[r] < args.d_token.shape()[0]) << "token id " << ids[r];
      const float* gradient = dy.Read(r * width + first, count, room);
      AddTo(gradient, token + ids[r] * width + first, count);
      if (position == nullptr) continue;
      AddTo(gradient, position + r % args.context * width + first, count);
    }
  });
}

}  // namespace stagecoach::cpu
