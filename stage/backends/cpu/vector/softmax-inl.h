// Softmax of rows of scores, for the attention kernels.
#if defined(STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_SOFTMAX_INL_H_
#undef STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_SOFTMAX_INL_H_
#else
#define STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_SOFTMAX_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "stage/backends/cpu/vector/tile-inl.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Calls body(offset, mask of the lanes that the row sees) for each of its vectors, then puts zeros
// where the strips read beyond the row's end. `row` is at the first column that it sees.
template <typename Body>
HWY_INLINE void ForEachVisible(int64_t visible, float* row, Body body) {
  const F32 d;
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i < visible; i += lanes) {
    body(i, hn::FirstN(d, static_cast<size_t>(HWY_MIN(lanes, visible - i))));
  }
  for (; i < visible + kTileRows; ++i) row[i] = 0.0f;
}

struct RowStatistics {
  float largest, sum;
};
// row = exp(row - max), without the division by the sum.
HWY_INLINE RowStatistics SoftmaxRow(int64_t visible, float* row) {
  const F32 d;
  auto largest = hn::Set(d, row[0]);
  const auto lowest = largest;
  ForEachVisible(visible, row, [&](int64_t i, auto mask) HWY_ATTR {
    largest = hn::Max(largest, hn::IfThenElse(mask, hn::LoadU(d, row + i), lowest));
  });
  const float row_largest = Largest(largest);
  const auto shift = hn::Set(d, row_largest);
  auto sum = hn::Zero(d);
  ForEachVisible(visible, row, [&](int64_t i, auto mask) HWY_ATTR {
    const auto p = hn::IfThenElseZero(mask, Exp(d, hn::Sub(hn::LoadU(d, row + i), shift)));
    sum = hn::Add(sum, p);
    hn::StoreU(p, d, row + i);
  });
  return {row_largest, Sum(sum)};
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
