#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/vector/elementwise.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "stage/backends/cpu/vector/kernels.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

const char* Target() { return hwy::TargetName(HWY_TARGET); }

void Gelu(const float* x, float* y, int64_t n) {
  ForEachVector(
      n, [=](int64_t i, auto at) HWY_ATTR { at.Store(GeluOf(F32(), at.Load(x + i)), y + i); });
}

void GeluBackward(const float* dy, const float* x, float* dx, int64_t n) {
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto slope = GeluDerivativeOf(F32(), at.Load(x + i));
    at.Store(hn::Mul(at.Load(dy + i), slope), dx + i);
  });
}

void AddTo(const float* x, float* y, int64_t n) {
  ForEachVector(n, [=](int64_t i, auto at)
                       HWY_ATTR { at.Store(hn::Add(at.Load(y + i), at.Load(x + i)), y + i); });
}

void AddRows(const float* a, const float* b, float* y, int64_t n) {
  ForEachVector(n, [=](int64_t i, auto at)
                       HWY_ATTR { at.Store(hn::Add(at.Load(a + i), at.Load(b + i)), y + i); });
}

void FillWith(float* y, float value, int64_t n) {
  const auto v = hn::Set(F32(), value);
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR { at.Store(v, y + i); });
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(Target);
HWY_EXPORT(Gelu);
HWY_EXPORT(GeluBackward);
HWY_EXPORT(AddTo);
HWY_EXPORT(AddRows);
HWY_EXPORT(FillWith);

const char* KernelTarget() { return HWY_DYNAMIC_DISPATCH(Target)(); }
void Gelu(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(Gelu)(x, y, n); }
void GeluBackward(const float* dy, const float* x, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(GeluBackward)(dy, x, dx, n);
}
void AddTo(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(AddTo)(x, y, n); }
void AddRows(const float* a, const float* b, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AddRows)(a, b, y, n);
}
void FillWith(float* y, float value, int64_t n) { HWY_DYNAMIC_DISPATCH(FillWith)(y, value, n); }

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
