#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/vector/bfloat16.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "stage/backends/cpu/vector/kernels.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

void WidenRows(const Bfloat16* x, int64_t stride, float* y, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, x += stride, y += columns) {
    ForEachVector(columns, [=](int64_t i, auto at) HWY_ATTR { at.Store(at.Load(x + i), y + i); });
  }
}

void NarrowRows(const float* x, Bfloat16* y, int64_t stride, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, x += columns, y += stride) {
    ForEachVector(columns, [=](int64_t i, auto at) HWY_ATTR { at.Store(at.Load(x + i), y + i); });
  }
}

void NarrowSumRows(const float* x, const Bfloat16* addend, Bfloat16* y, int64_t stride,
                   int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, x += columns, addend += stride, y += stride) {
    ForEachVector(columns, [=](int64_t i, auto at) HWY_ATTR {
      at.Store(hn::Add(at.Load(x + i), at.Load(addend + i)), y + i);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(WidenRows);
HWY_EXPORT(NarrowRows);
HWY_EXPORT(NarrowSumRows);

void WidenRows(const Bfloat16* x, int64_t stride, float* y, int64_t rows, int64_t columns) {
  HWY_DYNAMIC_DISPATCH(WidenRows)(x, stride, y, rows, columns);
}
void NarrowRows(const float* x, Bfloat16* y, int64_t stride, int64_t rows, int64_t columns) {
  HWY_DYNAMIC_DISPATCH(NarrowRows)(x, y, stride, rows, columns);
}
void NarrowSumRows(const float* x, const Bfloat16* addend, Bfloat16* y, int64_t stride,
                   int64_t rows, int64_t columns) {
  HWY_DYNAMIC_DISPATCH(NarrowSumRows)(x, addend, y, stride, rows, columns);
}

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
