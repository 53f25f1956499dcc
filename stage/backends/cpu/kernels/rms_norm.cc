#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/rms_norm.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "operations/norms/rms_norm.h"
#include "stage/backends/cpu/column_sums.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/kernels/rms_norm.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

void RmsNormRows(const float* x, const float* weight, float epsilon, float* y, float* rstd,
                 int64_t rows, int64_t width) {
  const F32 d;
  const float inverse_width = 1.0f / static_cast<float>(width);
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    auto squares = hn::Zero(d);
    ForEachVector(width, [&](int64_t i, auto at) HWY_ATTR {
      const auto values = at.Load(x + i);
      squares = hn::MulAdd(values, values, squares);
    });
    const auto mean = hn::Set(d, Sum(squares) * inverse_width + epsilon);
    const auto row_rstd = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(mean));
    ForEachVector(width, [&](int64_t i, auto at) HWY_ATTR {
      at.Store(hn::Mul(hn::Mul(at.Load(x + i), row_rstd), at.Load(weight + i)), y + i);
    });
    rstd[r] = hn::GetLane(row_rstd);
  }
}

// residual may be null or dx.
void RmsNormGradientRows(const float* dy, const float* x, const float* weight, const float* rstd,
                         const float* residual, float* dx, int64_t rows, int64_t width) {
  const F32 d;
  const float inverse_width = 1.0f / static_cast<float>(width);
  for (int64_t r = 0; r < rows; ++r, x += width, dy += width, dx += width) {
    auto sum = hn::Zero(d);
    ForEachVector(width, [&](int64_t i, auto at) HWY_ATTR {
      sum = hn::MulAdd(hn::Mul(at.Load(dy + i), at.Load(weight + i)), at.Load(x + i), sum);
    });
    const auto row_rstd = hn::Set(d, rstd[r]);
    const auto shared = hn::Set(d, rstd[r] * rstd[r] * (Sum(sum) * inverse_width));
    ForEachVector(width, [&](int64_t i, auto at) HWY_ATTR {
      const auto g = hn::Mul(at.Load(dy + i), at.Load(weight + i));
      auto gradient = hn::Mul(row_rstd, hn::NegMulAdd(at.Load(x + i), shared, g));
      if (residual != nullptr) gradient = hn::Add(gradient, at.Load(residual + r * width + i));
      at.Store(gradient, dx + i);
    });
  }
}

void RmsNormGradientColumns(const ColumnBlock& block, const float* rstd, int64_t stride,
                            int64_t group) {
  const F32 d;
  const float *dy = block.operands[0], *x = block.operands[1];
  for (int64_t first = 0; first < block.columns;) {  // up to the end of a group
    const int64_t column = block.column + first;
    const int64_t count = HWY_MIN(group - column % group, block.columns - first);
    const float* const own = rstd + block.row * stride + column / group;
    ForEachVector(count, [&](int64_t i, auto at) HWY_ATTR {
      auto sum = hn::Zero(d);
      for (int64_t r = 0; r < block.rows; ++r) {
        const int64_t from = r * block.stride + first + i;
        const auto xhat = hn::Mul(at.Load(x + from), hn::Set(d, own[r * stride]));
        sum = hn::MulAdd(at.Load(dy + from), xhat, sum);
      }
      float* const total = block.total + first + i;
      at.Store(hn::Add(at.Load(total), sum), total);
    });
    first += count;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(RmsNormRows);
HWY_EXPORT(RmsNormGradientRows);
HWY_EXPORT(RmsNormGradientColumns);

void RmsNormRows(const float* x, const float* weight, float epsilon, float* y, float* rstd,
                 int64_t rows, int64_t width) {
  HWY_DYNAMIC_DISPATCH(RmsNormRows)(x, weight, epsilon, y, rstd, rows, width);
}
void RmsNormGradientRows(const float* dy, const float* x, const float* weight, const float* rstd,
                         const float* residual, float* dx, int64_t rows, int64_t width) {
  HWY_DYNAMIC_DISPATCH(RmsNormGradientRows)(dy, x, weight, rstd, residual, dx, rows, width);
}
void RmsNormGradientColumns(const ColumnBlock& block, const float* rstd, int64_t stride,
                            int64_t group) {
  HWY_DYNAMIC_DISPATCH(RmsNormGradientColumns)(block, rstd, stride, group);
}

namespace {

absl::StatusOr<Kernel> RmsNorm(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto epsilon = static_cast<float>(AttributesOf<RmsNormAttributes>(call).epsilon);
  return Kernel([&backend, epsilon](const KernelContext&, const KernelArguments& a) {
    const int64_t width = a.inputs[0].shape().back();
    const FloatInput x(a.inputs[0]);
    const FloatOutput y(a.outputs[0]);
    const float* weight = a.inputs[1].data<float>();
    float* rstd = a.outputs[1].data<float>();
    backend.ForEachPiece(a.inputs[0], kSmallRowBlock, width, 2,
                         [&](int64_t first, int64_t count, const Room& room) {
                           const int64_t start = first * width, elements = count * width;
                           RmsNormRows(x.Read(start, elements, room[0]), weight, epsilon,
                                       y.At(start, room[1]), rstd + first, count, width);
                           y.Finish(start, elements, room[1]);
                         });
  });
}

absl::StatusOr<Kernel> InputGradient(CpuBackend& backend, const Call& call, const CallTypes&,
                                     DType) {
  const bool adds = AttributesOf<RmsNormGradientAttributes>(call).residual;
  return Kernel([&backend, adds](const KernelContext&, const KernelArguments& a) {
    const int64_t width = a.inputs[0].shape().back();
    const FloatInput dy(a.inputs[0]), x(a.inputs[1]), residual(a.inputs[adds ? 4 : 0]);
    const FloatOutput dx(a.outputs[0]);
    const float *weight = a.inputs[2].data<float>(), *rstd = a.inputs[3].data<float>();
    backend.ForEachPiece(
        a.inputs[0], kSmallRowBlock, width, 3, [&](int64_t first, int64_t count, const Room& room) {
          const int64_t start = first * width, elements = count * width;
          RmsNormGradientRows(dy.Read(start, elements, room[0]), x.Read(start, elements, room[1]),
                              weight, rstd + first,
                              adds ? residual.Read(start, elements, room[2]) : nullptr,
                              dx.At(start, room[2]), count, width);
          dx.Finish(start, elements, room[2]);
        });
  });
}

absl::StatusOr<Kernel> WeightGradient(CpuBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    const float* rstd = a.inputs[2].data<float>();
    const Tensor operands[] = {a.inputs[0], a.inputs[1]};
    const int64_t width = a.inputs[0].shape().back();
    SumColumns(
        backend, operands, width, width, a.adds[0].data<float>(),
        [rstd, width](const ColumnBlock& block) { RmsNormGradientColumns(block, rstd, 1, width); });
  });
}

}  // namespace

KernelList RmsNormKernels() {
  return {{"rms_norm", RmsNorm},
          {"rms_norm_input_gradient", InputGradient},
          {"rms_norm_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
