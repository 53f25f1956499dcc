// Products and sums are kept apart (no fused multiply-add): these are the reference's bits, but for
// the order of sums. A row's sum is one task's, and so is a column's, by rows; no order depends on
// the number of threads.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/updates/adafactor_update.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include <algorithm>
#include <cmath>
#include <optional>

#include "operations/updates/adafactor_update.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/kernels/updates/update_blocks.h"
#include "stage/backends/cpu/vector/kernels.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

// g becomes g * scale * factor / sqrt(column), a part of a row.
void DivideRowRange(float* g, const float* column, float scale, float factor, int64_t n) {
  const F32 d;
  const auto scales = hn::Set(d, scale), factors = hn::Set(d, factor);
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto scaled = hn::Mul(hn::Mul(at.Load(g + i), scales), factors);
    at.Store(hn::Div(scaled, hn::Sqrt(at.Load(column + i))), g + i);
  });
}

// The same of a vector, whose mean of squares moves.
void DivideVectorRange(float* g, float* square, int64_t n, const AdafactorNumbers& f) {
  const F32 d;
  const auto scale = hn::Set(d, f.gradient_scale), epsilon = hn::Set(d, f.epsilon1);
  const auto decay = hn::Set(d, f.decay), rest = hn::Set(d, f.rest);
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto x = hn::Mul(at.Load(g + i), scale);
    const auto mean = hn::Add(hn::Mul(decay, at.Load(square + i)),
                              hn::Mul(rest, hn::Add(hn::Mul(x, x), epsilon)));
    at.Store(mean, square + i);
    at.Store(hn::Div(x, hn::Sqrt(mean)), g + i);
  });
}

void AdafactorStepRange(float* value, const float* u, float* m, Bfloat16* rounded, int64_t n,
                        float clip, float scale, const AdafactorNumbers& f) {
  const F32 d;
  const auto clips = hn::Set(d, clip), scales = hn::Set(d, scale);
  const auto beta = hn::Set(d, f.beta1), rest = hn::Set(d, 1.0f - f.beta1);
  const auto rate = hn::Set(d, f.learning_rate), decay = hn::Set(d, f.weight_decay);
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    auto step = hn::Mul(clips, at.Load(u + i));
    if (m != nullptr) {
      step = hn::Add(hn::Mul(beta, at.Load(m + i)), hn::Mul(rest, step));
      at.Store(step, m + i);
    }
    const auto w = at.Load(value + i);
    const auto change = hn::Add(hn::Mul(scales, step), hn::Mul(decay, w));
    const auto next = hn::Sub(w, hn::Mul(rate, change));
    at.Store(next, value + i);
    if (rounded != nullptr) at.Store(next, rounded + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(DivideRowRange);
HWY_EXPORT(DivideVectorRange);
HWY_EXPORT(AdafactorStepRange);

namespace {

constexpr int64_t kColumnBlock = 64;  // columns that a task sums: 256 bytes of each row

struct Factored {
  FactoredShape shape;
  float *g, *row, *column;
};

void MoveRows(CpuBackend& backend, const Factored& of, const AdafactorNumbers& f) {
  const int64_t columns = of.shape.columns, rows = of.shape.matrices * of.shape.rows;
  const double each =
      static_cast<double>(f.gradient_scale) * f.gradient_scale / static_cast<double>(columns);
  const int64_t block = std::max<int64_t>(1, kElementBlock / columns);
  backend.ForEachBlock(rows, block, [&](int64_t first, int64_t count, int) {
    for (int64_t i = first; i < first + count; ++i) {
      const auto mean = static_cast<float>(SumOfSquares(of.g + i * columns, columns) * each);
      of.row[i] = f.decay * of.row[i] + f.rest * (mean + f.epsilon1);
    }
  });
}

void MoveColumns(CpuBackend& backend, const Factored& of, const AdafactorNumbers& f) {
  const int64_t rows = of.shape.rows, columns = of.shape.columns;
  const int64_t blocks = (columns + kColumnBlock - 1) / kColumnBlock;
  const double each =
      static_cast<double>(f.gradient_scale) * f.gradient_scale / static_cast<double>(rows);
  backend.ForEachBlock(of.shape.matrices * blocks, 1, [&](int64_t task, int64_t, int) {
    const int64_t first = task % blocks * kColumnBlock;
    const int64_t count = std::min(kColumnBlock, columns - first);
    const float* g = of.g + task / blocks * rows * columns + first;
    double sums[kColumnBlock] = {};
    for (int64_t i = 0; i < rows; ++i, g += columns) {
      for (int64_t j = 0; j < count; ++j) sums[j] += static_cast<double>(g[j]) * g[j];
    }
    float* const column = of.column + task / blocks * columns + first;
    for (int64_t j = 0; j < count; ++j) {
      const auto mean = static_cast<float>(sums[j] * each);
      column[j] = f.decay * column[j] + f.rest * (mean + f.epsilon1);
    }
  });
}

float MeanOfRows(const Factored& of, int64_t matrix) {
  const float* const row = of.row + matrix * of.shape.rows;
  double sum = 0;
  for (int64_t i = 0; i < of.shape.rows; ++i) sum += row[i];
  return static_cast<float>(sum / static_cast<double>(of.shape.rows));
}

// A part of the gradient, from element `first` on, row by row. `mean`: of the only matrix. Of more
// it is computed anew: that is little beside the elements, where a matrix has many columns.
void DivideRange(const Factored& of, float mean, int64_t first, int64_t count,
                 const AdafactorNumbers& f) {
  const int64_t rows = of.shape.rows, columns = of.shape.columns;
  int64_t known = 0;  // the matrix whose mean it is
  for (int64_t i = first; i < first + count;) {
    const int64_t row = i / columns, column = i % columns, matrix = row / rows;
    if (matrix != known) mean = MeanOfRows(of, known = matrix);
    const int64_t n = std::min(columns - column, first + count - i);
    HWY_DYNAMIC_DISPATCH(DivideRowRange)
    (of.g + i, of.column + matrix * columns + column, f.gradient_scale,
     1.0f / std::sqrt(of.row[row] / mean), n);
    i += n;
  }
}

struct Squares {
  double of_values, of_directions;
};

// Writes u over the gradient. A block's share of the sums is taken while the block is in the cache.
// Nothing: memory was refused.
std::optional<Squares> Divide(CpuBackend& backend, const UpdateArrays& of, const Factored& factored,
                              float* square, const AdafactorNumbers& f) {
  const int64_t blocks = ElementBlocks(of.elements);
  auto* const partial = reinterpret_cast<double*>(
      backend.ReserveShared(blocks * 2 * static_cast<int64_t>(sizeof(double))));
  if (partial == nullptr) return std::nullopt;
  const bool matrix = factored.shape.factored;
  const float mean = matrix ? MeanOfRows(factored, 0) : 0.0f;
  backend.ForEachBlock(of.elements, kElementBlock, [&](int64_t first, int64_t count, int) {
    if (matrix) {
      DivideRange(factored, mean, first, count, f);
    } else {
      HWY_DYNAMIC_DISPATCH(DivideVectorRange)(of.gradient + first, square + first, count, f);
    }
    partial[first / kElementBlock] = SumOfSquares(of.value + first, count);
    partial[blocks + first / kElementBlock] = SumOfSquares(of.gradient + first, count);
  });
  return Squares{SumInOrder(partial, blocks), SumInOrder(partial + blocks, blocks)};
}

absl::StatusOr<Kernel> Update(CpuBackend& backend, const Call& call, const CallTypes& types,
                              DType) {
  const auto attributes = AttributesOf<AdafactorUpdateAttributes>(call);
  const FactoredShape shape(types.adds[1].shape);
  return Kernel([&backend, attributes, shape](const KernelContext& context,
                                              const KernelArguments& a) {
    const AdafactorNumbers f = NumbersOf(attributes, *context.update);
    const UpdateOperands operands(a);
    const UpdateArrays of(a);
    if (of.elements == 0) return;
    const size_t last = operands.states - 1;
    float* const m = attributes.beta1 != 0 ? operands.state(last - 1).data<float>() : nullptr;
    float* const row_or_square = operands.state(last).data<float>();
    const Factored factored = {shape, of.gradient, row_or_square, operands.state(0).data<float>()};
    if (shape.factored) {
      MoveRows(backend, factored, f);
      MoveColumns(backend, factored, f);
    }
    const std::optional<Squares> squares = Divide(backend, of, factored, row_or_square, f);
    if (!squares.has_value()) return;
    const float clip = f.ClipOf(squares->of_directions, of.elements);
    const float scale = f.ScaleOf(squares->of_values, of.elements);
    backend.ForEachBlock(of.elements, kElementBlock, [&](int64_t first, int64_t count, int) {
      HWY_DYNAMIC_DISPATCH(AdafactorStepRange)
      (of.value + first, of.gradient + first, At(m, first), At(of.rounded, first), count, clip,
       scale, f);
    });
  });
}

}  // namespace

KernelList AdafactorUpdateKernels() { return {{"adafactor_update", Update}}; }

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
