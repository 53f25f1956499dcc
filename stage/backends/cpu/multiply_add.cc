#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/multiply_add.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "stage/backends/cpu/multiply_add.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

template <typename A, typename B>
HWY_INLINE void MultiplyAddOf(const A* a, const B* b, float* y, int64_t n) {
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    at.Store(hn::MulAdd(at.Load(a + i), at.Load(b + i), at.Load(y + i)), y + i);
  });
}

void MultiplyAddFloats(const float* a, const float* b, float* y, int64_t n) {
  MultiplyAddOf(a, b, y, n);
}
void MultiplyAddMixed(const Bfloat16* a, const float* b, float* y, int64_t n) {
  MultiplyAddOf(a, b, y, n);
}
void MultiplyAddNarrow(const Bfloat16* a, const Bfloat16* b, float* y, int64_t n) {
  MultiplyAddOf(a, b, y, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(MultiplyAddFloats);
HWY_EXPORT(MultiplyAddMixed);
HWY_EXPORT(MultiplyAddNarrow);

void MultiplyAdd(const float* a, const float* b, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(MultiplyAddFloats)(a, b, y, n);
}
void MultiplyAdd(const Bfloat16* a, const float* b, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(MultiplyAddMixed)(a, b, y, n);
}
void MultiplyAdd(const Bfloat16* a, const Bfloat16* b, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(MultiplyAddNarrow)(a, b, y, n);
}

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
