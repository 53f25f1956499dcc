#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/layer_norm.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "stage/backends/cpu/kernels.h"
#include "stage/backends/cpu/vector-inl.h"

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

void LayerNormBackwardRows(const float* dy, const float* x, const float* weight, const float* mean,
                           const float* rstd, const float* residual, float* dx, int64_t rows,
                           int64_t width) {
  if (residual == nullptr) {
    LayerNormBackwardEach<false>(dy, x, weight, mean, rstd, nullptr, dx, rows, width);
  } else {
    LayerNormBackwardEach<true>(dy, x, weight, mean, rstd, residual, dx, rows, width);
  }
}

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

void LayerNormRows(const float* x, const float* weight, const float* bias, float epsilon, float* y,
                   float* mean, float* rstd, int64_t rows, int64_t width) {
  HWY_DYNAMIC_DISPATCH(LayerNormRows)(x, weight, bias, epsilon, y, mean, rstd, rows, width);
}
void LayerNormBackwardRows(const float* dy, const float* x, const float* weight, const float* mean,
                           const float* rstd, const float* residual, float* dx, int64_t rows,
                           int64_t width) {
  HWY_DYNAMIC_DISPATCH(LayerNormBackwardRows)
  (dy, x, weight, mean, rstd, residual, dx, rows, width);
}
void LayerNormBackwardColumns(const float* dy, const float* x, const float* mean, const float* rstd,
                              float* d_weight, float* d_bias, int64_t rows, int64_t stride,
                              int64_t columns) {
  HWY_DYNAMIC_DISPATCH(LayerNormBackwardColumns)
  (dy, x, mean, rstd, d_weight, d_bias, rows, stride, columns);
}

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
