// Rows of the last extent (operations/norms/layer_norm.h).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/layer_norm.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include <algorithm>

#include "base/errors/check.h"
#include "operations/norms/layer_norm.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/kernels.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

// Two passes over a row that stays in the first cache: no cancellation in the variance.
void LayerNormRows(const float* x, const float* weight, const float* bias, float epsilon, float* y,
                   float* mean, float* rstd, int64_t rows, int64_t width) {
  const F32 d;
  const float inverse_width = 1.0f / static_cast<float>(width);
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    auto sum = hn::Zero(d);
    ForEachVector(width, [&](int64_t i, auto at) HWY_ATTR { sum = hn::Add(sum, at.Load(x + i)); });
    const auto row_mean = hn::Set(d, Sum(sum) * inverse_width);
    auto squares = hn::Zero(d);
    ForEachVector(width, [&](int64_t i, auto at) HWY_ATTR {
      const auto centred = at.ZeroRest(hn::Sub(at.Load(x + i), row_mean));
      squares = hn::MulAdd(centred, centred, squares);
    });
    const auto variance = hn::Set(d, Sum(squares) * inverse_width + epsilon);
    const auto row_rstd = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(variance));
    ForEachVector(width, [&](int64_t i, auto at) HWY_ATTR {
      const auto xhat = hn::Mul(hn::Sub(at.Load(x + i), row_mean), row_rstd);
      at.Store(hn::MulAdd(xhat, at.Load(weight + i), at.Load(bias + i)), y + i);
    });
    mean[r] = hn::GetLane(row_mean);
    rstd[r] = hn::GetLane(row_rstd);
  }
}

// g = dy * weight; dx = rstd * (g - mean(g) - xhat * mean(g * xhat)) + residual.
template <bool kResidual>
HWY_INLINE void LayerNormBackwardEach(const float* dy, const float* x, const float* weight,
                                      const float* mean, const float* rstd, const float* residual,
                                      float* dx, int64_t rows, int64_t width) {
  const F32 d;
  const float inverse_width = 1.0f / static_cast<float>(width);
  for (int64_t r = 0; r < rows; ++r, x += width, dy += width, dx += width) {
    const auto row_mean = hn::Set(d, mean[r]), row_rstd = hn::Set(d, rstd[r]);
    auto sum = hn::Zero(d), sum_xhat = hn::Zero(d);
    ForEachVector(width, [&](int64_t i, auto at) HWY_ATTR {
      const auto g = hn::Mul(at.Load(dy + i), at.Load(weight + i));
      const auto xhat = hn::Mul(hn::Sub(at.Load(x + i), row_mean), row_rstd);
      sum = hn::Add(sum, g);
      sum_xhat = hn::MulAdd(g, xhat, sum_xhat);
    });
    const auto mean_g = hn::Set(d, Sum(sum) * inverse_width);
    const auto mean_gx = hn::Set(d, Sum(sum_xhat) * inverse_width);
    ForEachVector(width, [&](int64_t i, auto at) HWY_ATTR {
      const auto g = hn::Mul(at.Load(dy + i), at.Load(weight + i));
      const auto xhat = hn::Mul(hn::Sub(at.Load(x + i), row_mean), row_rstd);
      auto gradient = hn::Mul(row_rstd, hn::NegMulAdd(xhat, mean_gx, hn::Sub(g, mean_g)));
      if constexpr (kResidual) {
        gradient = hn::Add(gradient, at.Load(residual + r * width + i));
      }
      at.Store(gradient, dx + i);
    });
  }
}

// residual may be null or dx.
void LayerNormBackwardRows(const float* dy, const float* x, const float* weight, const float* mean,
                           const float* rstd, const float* residual, float* dx, int64_t rows,
                           int64_t width) {
  if (residual == nullptr) {
    LayerNormBackwardEach<false>(dy, x, weight, mean, rstd, nullptr, dx, rows, width);
  } else {
    LayerNormBackwardEach<true>(dy, x, weight, mean, rstd, residual, dx, rows, width);
  }
}

// Columns [0, columns) of a matrix with `stride`: d_weight adds sum(dy * xhat), d_bias sum(dy).
void LayerNormBackwardColumns(const float* dy, const float* x, const float* mean, const float* rstd,
                              float* d_weight, float* d_bias, int64_t rows, int64_t stride,
                              int64_t columns) {
  const F32 d;
  ForEachVector(columns, [&](int64_t i, auto at) HWY_ATTR {
    auto total_weight = hn::Zero(d), total_bias = hn::Zero(d);
    for (int64_t first = 0; first < rows; first += kSumRows) {
      const int64_t last = HWY_MIN(first + kSumRows, rows);
      auto sum_weight = hn::Zero(d), sum_bias = hn::Zero(d);
      for (int64_t r = first; r < last; ++r) {
        const auto gradient = at.Load(dy + r * stride + i);
        const auto centred = hn::Sub(at.Load(x + r * stride + i), hn::Set(d, mean[r]));
        const auto xhat = hn::Mul(centred, hn::Set(d, rstd[r]));
        sum_weight = hn::MulAdd(gradient, xhat, sum_weight);
        sum_bias = hn::Add(sum_bias, gradient);
      }
      total_weight = hn::Add(total_weight, sum_weight);
      total_bias = hn::Add(total_bias, sum_bias);
    }
    at.Store(hn::Add(at.Load(d_weight + i), total_weight), d_weight + i);
    at.Store(hn::Add(at.Load(d_bias + i), total_bias), d_bias + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(LayerNormRows);
HWY_EXPORT(LayerNormBackwardRows);
HWY_EXPORT(LayerNormBackwardColumns);

namespace {

constexpr int64_t kGradientColumns = 64;  // of a task

absl::StatusOr<Kernel> Forward(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto epsilon = static_cast<float>(AttributesOf<LayerNormAttributes>(call).epsilon);
  return Kernel([&backend, epsilon](const KernelContext&, const KernelArguments& a) {
    const int64_t width = a.inputs[0].shape()[1];
    CHECK_EQ(a.inputs[1].elements(), width) << "layer norm";
    const FloatInput x(a.inputs[0]);
    const FloatOutput y(a.outputs[0]);
    const float *weight = a.inputs[1].data<float>(), *bias = a.inputs[2].data<float>();
    float *mean = a.outputs[1].data<float>(), *rstd = a.outputs[2].data<float>();
    backend.ForEachPiece(a.inputs[0], kSmallRowBlock, width, 2,
                         [&](int64_t first, int64_t count, const Room& room) {
                           HWY_DYNAMIC_DISPATCH(LayerNormRows)
                           (x.Read(first * width, count * width, room[0]), weight, bias, epsilon,
                            y.At(first * width, room[1]), mean + first, rstd + first, count, width);
                           y.Finish(first * width, count * width, room[1]);
                         });
  });
}

absl::StatusOr<Kernel> InputGradient(CpuBackend& backend, const Call& call, const CallTypes&,
                                     DType) {
  const bool adds = AttributesOf<LayerNormGradientAttributes>(call).residual;
  return Kernel([&backend, adds](const KernelContext&, const KernelArguments& a) {
    const int64_t width = a.inputs[1].shape()[1];
    CHECK(!adds || a.inputs[5].elements() == a.outputs[0].elements()) << "layer norm, residual";
    const FloatInput dy(a.inputs[0]), x(a.inputs[1]), residual(a.inputs[adds ? 5 : 0]);
    const FloatOutput dx(a.outputs[0]);
    const float *weight = a.inputs[2].data<float>(), *mean = a.inputs[3].data<float>();
    const float* rstd = a.inputs[4].data<float>();
    backend.ForEachPiece(
        a.inputs[1], kSmallRowBlock, width, 3, [&](int64_t first, int64_t count, const Room& room) {
          const int64_t start = first * width, elements = count * width;
          HWY_DYNAMIC_DISPATCH(LayerNormBackwardRows)
          (dy.Read(start, elements, room[0]), x.Read(start, elements, room[1]), weight,
           mean + first, rstd + first, adds ? residual.Read(start, elements, room[2]) : nullptr,
           dx.At(start, room[2]), count, width);
          dx.Finish(start, elements, room[2]);
        });
  });
}

// BF16 columns are widened kSumRows rows at a time, which keeps the order of additions, hence the
// float32 bits.
void AddNarrowColumns(CpuBackend& backend, const KernelArguments& a) {
  const int64_t rows = a.inputs[1].shape()[0], width = a.inputs[1].shape()[1];
  constexpr int64_t kArea = kSumRows * kGradientColumns;
  constexpr int64_t kFloats = 2 * kArea + 2 * kGradientColumns;
  const int rooms = backend.ReserveRooms(kFloats * static_cast<int64_t>(sizeof(float)));
  if (rooms == 0) return;
  const Bfloat16 *dy = a.inputs[0].data<Bfloat16>(), *x = a.inputs[1].data<Bfloat16>();
  const float *mean = a.inputs[2].data<float>(), *rstd = a.inputs[3].data<float>();
  float *d_weight = a.adds[0].data<float>(), *d_bias = a.adds[1].data<float>();
  backend.ForEachBlock(
      rooms, width, kGradientColumns, [&](int64_t first, int64_t count, int worker) {
        float *wide_dy = backend.WorkerScratch(worker), *wide_x = wide_dy + kArea;
        float *sum_weight = wide_x + kArea, *sum_bias = sum_weight + kGradientColumns;
        std::fill_n(sum_weight, 2 * kGradientColumns, 0.0f);
        for (int64_t r = 0; r < rows; r += kSumRows) {
          const int64_t some = std::min(kSumRows, rows - r);
          WidenRows(dy + r * width + first, width, wide_dy, some, count);
          WidenRows(x + r * width + first, width, wide_x, some, count);
          HWY_DYNAMIC_DISPATCH(LayerNormBackwardColumns)
          (wide_dy, wide_x, mean + r, rstd + r, sum_weight, sum_bias, some, count, count);
        }
        AddTo(sum_weight, d_weight + first, count);
        AddTo(sum_bias, d_bias + first, count);
      });
}

// A task owns a range of columns and walks the rows in order.
absl::StatusOr<Kernel> WeightGradient(CpuBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    if (IsBfloat16(a.inputs[1])) return AddNarrowColumns(backend, a);
    const int64_t rows = a.inputs[1].shape()[0], width = a.inputs[1].shape()[1];
    const float *dy = a.inputs[0].data<float>(), *x = a.inputs[1].data<float>();
    const float *mean = a.inputs[2].data<float>(), *rstd = a.inputs[3].data<float>();
    float *d_weight = a.adds[0].data<float>(), *d_bias = a.adds[1].data<float>();
    backend.ForEachBlock(width, kGradientColumns, [&](int64_t first, int64_t count, int) {
      HWY_DYNAMIC_DISPATCH(LayerNormBackwardColumns)
      (dy + first, x + first, mean, rstd, d_weight + first, d_bias + first, rows, width, count);
    });
  });
}

}  // namespace

KernelList LayerNormKernels() {
  return {{"layer_norm", Forward},
          {"layer_norm_input_gradient", InputGradient},
          {"layer_norm_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
