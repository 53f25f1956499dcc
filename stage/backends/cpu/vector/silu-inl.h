// SiLU and its slope. Included once per instruction set, after vector-inl.h.
#if defined(STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_SILU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_SILU_INL_H_
#undef STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_SILU_INL_H_
#else
#define STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_SILU_INL_H_
#endif

#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

// The logistic function.
HWY_INLINE F32Vec GateOf(F32Vec x) {
  const F32 d;
  const auto one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, Exp(d, hn::Neg(x))));
}
// s + x s (1 - s), given s = GateOf(x).
HWY_INLINE F32Vec SiluSlope(F32Vec x, F32Vec gate) {
  return hn::MulAdd(x, hn::NegMulAdd(gate, gate, gate), gate);
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
