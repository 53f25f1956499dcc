// Vector helpers for the kernels: partial loads and stores, exp, the logistic function, maps.
// Included once per instruction set (Highway's foreach_target), hence the toggling guard.
#if defined(STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_VECTOR_INL_H_
#undef STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_VECTOR_INL_H_
#else
#define STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_VECTOR_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "base/numbers/bfloat16.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using F32Vec = hn::Vec<F32>;

HWY_INLINE int64_t FloatLanes() { return static_cast<int64_t>(hn::Lanes(F32())); }

// The first `count` lanes from p, zeros after; never reads past p + count.
HWY_INLINE F32Vec LoadFirst(F32 d, const float* p, int64_t count) {
  HWY_ALIGN float lanes[hn::MaxLanes(F32())] = {};
  std::memcpy(lanes, p, static_cast<size_t>(count) * sizeof(float));
  return hn::Load(d, lanes);
}

HWY_INLINE void StoreFirst(F32 d, F32Vec v, float* p, int64_t count) {
  HWY_ALIGN float lanes[hn::MaxLanes(F32())];
  hn::Store(v, d, lanes);
  std::memcpy(p, lanes, static_cast<size_t>(count) * sizeof(float));
}

// BF16 is the upper half of a float32: a shift widens it. Narrowing rounds to nearest even by
// integer arithmetic, the bits of Bfloat16(float) on every instruction set.
using U16 = hn::Rebind<uint16_t, F32>;
HWY_INLINE F32Vec Widened(hn::Vec<U16> v) {
  const hn::RebindToUnsigned<F32> d32;
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(d32, v)));
}
HWY_INLINE hn::Vec<U16> Narrowed(F32Vec v) {
  const hn::RebindToUnsigned<F32> d32;
  const hn::RebindToSigned<F32> i32;
  const auto bits = hn::BitCast(d32, v), upper = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(upper, hn::Set(d32, 1u));
  const auto rounded =
      hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d32, uint32_t{0x7fff}))));
  const auto nan = hn::Or(upper, hn::Set(d32, uint32_t{0x40}));
  const auto result = hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(v)), nan, rounded);
  return hn::DemoteTo(U16(), hn::BitCast(i32, result));  // saturates, but 16 bits fit
}

// Calls body(offset, at) for every vector of [0, n). at.Load(p) and at.Store(v, p) touch lanes from
// p on and handle the partial vector at the end. BF16 is widened and narrowed.
struct FullAccess {
  HWY_INLINE F32Vec Load(const float* p) const { return hn::LoadU(F32(), p); }
  HWY_INLINE F32Vec Load(const Bfloat16* p) const { return Widened(hn::LoadU(U16(), &p->bits)); }
  HWY_INLINE void Store(F32Vec v, float* p) const { hn::StoreU(v, F32(), p); }
  HWY_INLINE void Store(F32Vec v, Bfloat16* p) const { hn::StoreU(Narrowed(v), U16(), &p->bits); }
  HWY_INLINE F32Vec ZeroRest(F32Vec v) const { return v; }
  HWY_INLINE F32Vec Select(F32Vec v, F32Vec) const { return v; }
};
struct PartialAccess {
  int64_t count;
  HWY_INLINE F32Vec Load(const float* p) const { return LoadFirst(F32(), p, count); }
  HWY_INLINE F32Vec Load(const Bfloat16* p) const {
    HWY_ALIGN uint16_t lanes[hn::MaxLanes(F32())] = {};
    std::memcpy(lanes, p, static_cast<size_t>(count) * sizeof(Bfloat16));
    return Widened(hn::LoadU(U16(), lanes));
  }
  HWY_INLINE void Store(F32Vec v, float* p) const { StoreFirst(F32(), v, p, count); }
  HWY_INLINE void Store(F32Vec v, Bfloat16* p) const {
    HWY_ALIGN uint16_t lanes[hn::MaxLanes(F32())];
    hn::StoreU(Narrowed(v), U16(), lanes);
    std::memcpy(p, lanes, static_cast<size_t>(count) * sizeof(Bfloat16));
  }
  HWY_INLINE F32Vec ZeroRest(F32Vec v) const {  // for sums of functions with f(0) != 0
    return hn::IfThenElseZero(hn::FirstN(F32(), static_cast<size_t>(count)), v);
  }
  HWY_INLINE F32Vec Select(F32Vec v, F32Vec rest) const {
    return hn::IfThenElse(hn::FirstN(F32(), static_cast<size_t>(count)), v, rest);
  }
};
template <typename Body>
HWY_INLINE void ForEachVector(int64_t n, Body body) {
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, FullAccess());
  if (i < n) body(i, PartialAccess{n - i});
}

HWY_INLINE float Sum(F32Vec v) { return hn::GetLane(hn::SumOfLanes(F32(), v)); }
HWY_INLINE float Largest(F32Vec v) { return hn::GetLane(hn::MaxOfLanes(F32(), v)); }

// e^x within 1 ulp for results in the normal range; below it 0, from 88 on infinity; NaN stays.
// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by a polynomial of degree 6 (Cephes' coefficients).
HWY_INLINE F32Vec Exp(F32 d, F32Vec x) {
  const hn::RebindToSigned<F32> di;
  const auto n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504088896341f)));
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  auto p = hn::Set(d, 1.9875691500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0f));
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
  // There a conversion of NaN is undefined. The polynomial is NaN already.
  const auto whole = hn::IfThenElse(hn::IsNaN(n), hn::Zero(d), n);
#else
  const auto whole = n;
#endif
  const auto exponent = hn::Add(hn::ConvertTo(di, whole), hn::Set(di, 127));
  p = hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(exponent)));
  p = hn::IfThenElse(hn::Lt(x, hn::Set(d, -87.0f)), hn::Zero(d), p);
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, 88.0f)), hn::Inf(d), p);
}

// gelu_tanh(x) = x s(u) with s the logistic function and
// u = 2 sqrt(2 / pi) (x + 0.044715 x^3), because 0.5 (1 + tanh(u / 2)) = s(u).
constexpr float kGeluScale = 1.5957691216057308f;
constexpr float kGeluCube = 0.044715f;

HWY_INLINE F32Vec GeluGate(F32 d, F32Vec x, F32Vec square) {
  const auto one = hn::Set(d, 1.0f);
  const auto inner =
      hn::MulAdd(square, hn::Set(d, -kGeluScale * kGeluCube), hn::Set(d, -kGeluScale));
  return hn::Div(one, hn::Add(one, Exp(d, hn::Mul(x, inner))));
}
HWY_INLINE F32Vec GeluOf(F32 d, F32Vec x) { return hn::Mul(x, GeluGate(d, x, hn::Mul(x, x))); }
// s + x s (1 - s) u'(x)
HWY_INLINE F32Vec GeluDerivativeOf(F32 d, F32Vec x) {
  const auto square = hn::Mul(x, x);
  const auto gate = GeluGate(d, x, square);
  const auto slope =
      hn::MulAdd(square, hn::Set(d, 3.0f * kGeluScale * kGeluCube), hn::Set(d, kGeluScale));
  const auto rest = hn::NegMulAdd(gate, gate, gate);
  return hn::MulAdd(hn::Mul(x, rest), slope, gate);
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
