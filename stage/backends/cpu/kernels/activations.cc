// Of one value, element by element (operations/pointwise/activations.cc).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/activations.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/kernels.h"
#include "stage/backends/cpu/vector/silu-inl.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

// Phi(x), and the normal density where it begins: by Abramowitz and Stegun, 7.1.26, within 1e-7.
struct NormalOf {
  F32Vec share, density;
};
HWY_INLINE NormalOf NormalAt(F32Vec x) {
  const F32 d;
  const auto one = hn::Set(d, 1.0f);
  const auto e = Exp(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5f)));
  const auto t = hn::Div(one, hn::MulAdd(hn::Abs(x), hn::Set(d, 0.3275911f * 0.70710678f), one));
  auto tail = hn::Set(d, 0.5f * 1.061405429f);
  tail = hn::MulAdd(tail, t, hn::Set(d, 0.5f * -1.453152027f));
  tail = hn::MulAdd(tail, t, hn::Set(d, 0.5f * 1.421413741f));
  tail = hn::MulAdd(tail, t, hn::Set(d, 0.5f * -0.284496736f));
  tail = hn::MulAdd(tail, t, hn::Set(d, 0.5f * 0.254829592f));
  tail = hn::Mul(hn::Mul(tail, t), e);
  const auto share = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
  return {share, hn::Mul(e, hn::Set(d, 0.39894228f))};
}

// `other` is null where there is one operand.
void GeluErfRange(const float* x, const float*, float* y, int64_t n) {
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto values = at.Load(x + i);
    at.Store(hn::Mul(values, NormalAt(values).share), y + i);
  });
}
void GeluErfGradientRange(const float* dy, const float* x, float* dx, int64_t n) {
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto values = at.Load(x + i);
    const NormalOf normal = NormalAt(values);
    const auto slope = hn::MulAdd(values, normal.density, normal.share);
    at.Store(hn::Mul(at.Load(dy + i), slope), dx + i);
  });
}
void SiluRange(const float* x, const float*, float* y, int64_t n) {
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto values = at.Load(x + i);
    at.Store(hn::Mul(values, GateOf(values)), y + i);
  });
}
void SiluGradientRange(const float* dy, const float* x, float* dx, int64_t n) {
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto values = at.Load(x + i);
    at.Store(hn::Mul(at.Load(dy + i), SiluSlope(values, GateOf(values))), dx + i);
  });
}
void ReluRange(const float* x, const float*, float* y, int64_t n) {
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto values = at.Load(x + i);
    // A NaN stays one, as max(x, 0) would not let it on every instruction set.
    const auto low = hn::Lt(values, hn::Zero(F32()));
    at.Store(hn::IfThenZeroElse(low, values), y + i);
  });
}
void ReluGradientRange(const float* dy, const float* y, float* dx, int64_t n) {
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto kept = hn::Gt(at.Load(y + i), hn::Zero(F32()));
    at.Store(hn::IfThenElseZero(kept, at.Load(dy + i)), dx + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(GeluErfRange);
HWY_EXPORT(GeluErfGradientRange);
HWY_EXPORT(SiluRange);
HWY_EXPORT(SiluGradientRange);
HWY_EXPORT(ReluRange);
HWY_EXPORT(ReluGradientRange);

namespace {

using Range = void (*)(const float* x, const float* other, float* y, int64_t n);

// Linear maps take these too (kernels.h).
void GeluOfOne(const float* x, const float*, float* y, int64_t n) { Gelu(x, y, n); }

void GeluErf(const float* x, const float* other, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(GeluErfRange)(x, other, y, n);
}
void GeluErfGradient(const float* dy, const float* x, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(GeluErfGradientRange)(dy, x, dx, n);
}
void Silu(const float* x, const float* other, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SiluRange)(x, other, y, n);
}
void SiluGradient(const float* dy, const float* x, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SiluGradientRange)(dy, x, dx, n);
}
void Relu(const float* x, const float* other, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ReluRange)(x, other, y, n);
}
void ReluGradient(const float* dy, const float* y, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ReluGradientRange)(dy, y, dx, n);
}

template <Range kRange>
absl::StatusOr<Kernel> Map(CpuBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    const bool two = a.inputs.size() > 1;
    const FloatInput x(a.inputs[0]), other(a.inputs[two ? 1 : 0]);
    const FloatOutput y(a.outputs[0]);
    backend.ForEachPiece(
        a.outputs[0], kElementBlock, 1, 2, [&](int64_t first, int64_t count, const Room& room) {
          kRange(x.Read(first, count, room[0]), two ? other.Read(first, count, room[1]) : nullptr,
                 y.At(first, room[0]), count);
          y.Finish(first, count, room[0]);
        });
  });
}

}  // namespace

KernelList ActivationsKernels() {
  return {{"gelu", Map<GeluOfOne>},   {"gelu_gradient", Map<GeluBackward>},
          {"gelu_erf", Map<GeluErf>}, {"gelu_erf_gradient", Map<GeluErfGradient>},
          {"silu", Map<Silu>},        {"silu_gradient", Map<SiluGradient>},
          {"relu", Map<Relu>},        {"relu_gradient", Map<ReluGradient>}};
}

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
