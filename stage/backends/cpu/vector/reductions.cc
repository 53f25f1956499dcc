#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/vector/reductions.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "stage/backends/cpu/vector/kernels.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

template <int kVectors>
void WideColumnSums(const float* x, float* sums, int64_t rows, int64_t stride) {
  const F32 d;
  const int64_t lanes = FloatLanes();
  F32Vec totals[kVectors];
  for (auto& total : totals) total = hn::Zero(d);
  for (int64_t first = 0; first < rows; first += kSumRows) {
    const int64_t last = HWY_MIN(first + kSumRows, rows);
    F32Vec block[kVectors];
    for (auto& sum : block) sum = hn::Zero(d);
    for (int64_t r = first; r < last; ++r) {
      for (int i = 0; i < kVectors; ++i) {
        block[i] = hn::Add(block[i], hn::LoadU(d, x + r * stride + i * lanes));
      }
    }
    for (int i = 0; i < kVectors; ++i) totals[i] = hn::Add(totals[i], block[i]);
  }
  for (int i = 0; i < kVectors; ++i) {
    hn::StoreU(hn::Add(hn::LoadU(d, sums + i * lanes), totals[i]), d, sums + i * lanes);
  }
}

// The same sums for up to one vector of columns at the right edge.
void NarrowColumnSums(const float* x, float* sums, int64_t rows, int64_t stride, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c) {
    float total = 0.0f;
    for (int64_t first = 0; first < rows; first += kSumRows) {
      const int64_t last = HWY_MIN(first + kSumRows, rows);
      float block = 0.0f;
      for (int64_t r = first; r < last; ++r) block += x[r * stride + c];
      total += block;
    }
    sums[c] += total;
  }
}

void ColumnSums(const float* x, float* sums, int64_t rows, int64_t stride, int64_t columns) {
  const int64_t lanes = FloatLanes();
  int64_t c = 0;
  for (; c + 4 * lanes <= columns; c += 4 * lanes) WideColumnSums<4>(x + c, sums + c, rows, stride);
  for (; c + lanes <= columns; c += lanes) WideColumnSums<1>(x + c, sums + c, rows, stride);
  NarrowColumnSums(x + c, sums + c, rows, stride, columns - c);
}

double SumOfSquares(const float* x, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> df;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
  const auto add = [&](auto& sum, const float* p) HWY_ATTR {
    const auto v = hn::PromoteTo(d, hn::LoadU(df, p));
    sum = hn::MulAdd(v, v, sum);
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    add(sum0, x + i);
    add(sum1, x + i + lanes);
    add(sum2, x + i + 2 * lanes);
    add(sum3, x + i + 3 * lanes);
  }
  double total = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
  for (; i < n; ++i) total += double{x[i]} * x[i];
  return total;
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(ColumnSums);
HWY_EXPORT(SumOfSquares);

void ColumnSums(const float* x, float* sums, int64_t rows, int64_t stride, int64_t columns) {
  HWY_DYNAMIC_DISPATCH(ColumnSums)(x, sums, rows, stride, columns);
}
double SumOfSquares(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(SumOfSquares)(x, n); }

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
