// Products and sums are kept apart (no fused multiply-add): these are the reference's bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/vector/optimizers.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "stage/backends/cpu/vector/kernels.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

void SgdRange(float* value, const float* gradient, float* velocity, Bfloat16* rounded, int64_t n,
              const SgdFactors& factors) {
  const F32 d;
  const auto gradient_scale = hn::Set(d, factors.gradient_scale);
  const auto rate = hn::Set(d, factors.learning_rate), momentum = hn::Set(d, factors.momentum);
  const auto decay = hn::Set(d, factors.weight_decay);
  const bool nesterov = factors.nesterov;
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    auto update = hn::Mul(at.Load(gradient + i), gradient_scale);
    if (velocity != nullptr) {
      const auto next = hn::Add(hn::Mul(momentum, at.Load(velocity + i)), update);
      at.Store(next, velocity + i);
      update = nesterov ? hn::Add(update, hn::Mul(momentum, next)) : next;
    }
    const auto w = at.Load(value + i);
    const auto next = hn::Sub(w, hn::Mul(rate, hn::Add(update, hn::Mul(decay, w))));
    at.Store(next, value + i);
    if (rounded != nullptr) at.Store(next, rounded + i);
  });
}

void AdamWRange(float* value, const float* gradient, float* m, float* v, Bfloat16* rounded,
                int64_t n, const AdamWFactors& factors) {
  const F32 d;
  const auto gradient_scale = hn::Set(d, factors.gradient_scale);
  const auto beta1 = hn::Set(d, factors.beta1), rest1 = hn::Set(d, 1.0f - factors.beta1);
  const auto beta2 = hn::Set(d, factors.beta2), rest2 = hn::Set(d, 1.0f - factors.beta2);
  const auto correction1 = hn::Set(d, factors.correction1);
  const auto correction2 = hn::Set(d, factors.correction2);
  const auto rate = hn::Set(d, factors.learning_rate), epsilon = hn::Set(d, factors.epsilon);
  const auto decay = hn::Set(d, factors.weight_decay);
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto g = hn::Mul(at.Load(gradient + i), gradient_scale);
    const auto mean = hn::Add(hn::Mul(beta1, at.Load(m + i)), hn::Mul(rest1, g));
    const auto square = hn::Add(hn::Mul(beta2, at.Load(v + i)), hn::Mul(hn::Mul(rest2, g), g));
    at.Store(mean, m + i);
    at.Store(square, v + i);
    const auto root = hn::Add(hn::Sqrt(hn::Div(square, correction2)), epsilon);
    const auto step = hn::Div(hn::Div(mean, correction1), root);
    const auto w = at.Load(value + i);
    const auto next = hn::Sub(w, hn::Mul(rate, hn::Add(step, hn::Mul(decay, w))));
    at.Store(next, value + i);
    if (rounded != nullptr) at.Store(next, rounded + i);
  });
}

void RmsPropRange(float* value, const float* gradient, float* square, float* velocity,
                  Bfloat16* rounded, int64_t n, const RmsPropFactors& factors) {
  const F32 d;
  const auto gradient_scale = hn::Set(d, factors.gradient_scale);
  const auto inner = hn::Set(d, factors.inner_rate), outer = hn::Set(d, factors.outer_rate);
  const auto decay = hn::Set(d, factors.decay), rest = hn::Set(d, 1.0f - factors.decay);
  const auto momentum = hn::Set(d, factors.momentum);
  const auto inside = hn::Set(d, factors.inside), outside = hn::Set(d, factors.outside);
  const auto weight_decay = hn::Set(d, factors.weight_decay);
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto w = at.Load(value + i);
    const auto g =
        hn::Add(hn::Mul(at.Load(gradient + i), gradient_scale), hn::Mul(weight_decay, w));
    const auto mean = hn::Add(hn::Mul(decay, at.Load(square + i)), hn::Mul(hn::Mul(rest, g), g));
    at.Store(mean, square + i);
    const auto root = hn::Add(hn::Sqrt(hn::Add(mean, inside)), outside);
    auto update = hn::Div(hn::Mul(inner, g), root);
    if (velocity != nullptr) {
      update = hn::Add(hn::Mul(momentum, at.Load(velocity + i)), update);
      at.Store(update, velocity + i);
    }
    const auto next = hn::Sub(w, hn::Mul(outer, update));
    at.Store(next, value + i);
    if (rounded != nullptr) at.Store(next, rounded + i);
  });
}

void LambDirectionRange(const float* value, float* gradient, float* m, float* v, int64_t n,
                        const AdamWFactors& factors) {
  const F32 d;
  const auto gradient_scale = hn::Set(d, factors.gradient_scale);
  const auto beta1 = hn::Set(d, factors.beta1), rest1 = hn::Set(d, 1.0f - factors.beta1);
  const auto beta2 = hn::Set(d, factors.beta2), rest2 = hn::Set(d, 1.0f - factors.beta2);
  const auto correction1 = hn::Set(d, factors.correction1);
  const auto correction2 = hn::Set(d, factors.correction2);
  const auto epsilon = hn::Set(d, factors.epsilon), decay = hn::Set(d, factors.weight_decay);
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto g = hn::Mul(at.Load(gradient + i), gradient_scale);
    const auto mean = hn::Add(hn::Mul(beta1, at.Load(m + i)), hn::Mul(rest1, g));
    const auto square = hn::Add(hn::Mul(beta2, at.Load(v + i)), hn::Mul(hn::Mul(rest2, g), g));
    at.Store(mean, m + i);
    at.Store(square, v + i);
    const auto root = hn::Add(hn::Sqrt(hn::Div(square, correction2)), epsilon);
    const auto step = hn::Div(hn::Div(mean, correction1), root);
    at.Store(hn::Add(step, hn::Mul(decay, at.Load(value + i))), gradient + i);
  });
}

void StepRange(float* value, const float* direction, Bfloat16* rounded, int64_t n, float rate) {
  const F32 d;
  const auto factor = hn::Set(d, rate);
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto next = hn::Sub(at.Load(value + i), hn::Mul(factor, at.Load(direction + i)));
    at.Store(next, value + i);
    if (rounded != nullptr) at.Store(next, rounded + i);
  });
}

void AverageRange(const float* value, float* average, int64_t n, float rate) {
  const F32 d;
  const auto factor = hn::Set(d, rate);
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto old = at.Load(average + i);
    at.Store(hn::Add(old, hn::Mul(factor, hn::Sub(at.Load(value + i), old))), average + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(SgdRange);
HWY_EXPORT(AdamWRange);
HWY_EXPORT(RmsPropRange);
HWY_EXPORT(LambDirectionRange);
HWY_EXPORT(StepRange);
HWY_EXPORT(AverageRange);

void SgdRange(float* value, const float* gradient, float* velocity, Bfloat16* rounded, int64_t n,
              const SgdFactors& factors) {
  HWY_DYNAMIC_DISPATCH(SgdRange)(value, gradient, velocity, rounded, n, factors);
}
void AdamWRange(float* value, const float* gradient, float* m, float* v, Bfloat16* rounded,
                int64_t n, const AdamWFactors& factors) {
  HWY_DYNAMIC_DISPATCH(AdamWRange)(value, gradient, m, v, rounded, n, factors);
}
void RmsPropRange(float* value, const float* gradient, float* square, float* velocity,
                  Bfloat16* rounded, int64_t n, const RmsPropFactors& factors) {
  HWY_DYNAMIC_DISPATCH(RmsPropRange)(value, gradient, square, velocity, rounded, n, factors);
}
void LambDirectionRange(const float* value, float* gradient, float* m, float* v, int64_t n,
                        const AdamWFactors& factors) {
  HWY_DYNAMIC_DISPATCH(LambDirectionRange)(value, gradient, m, v, n, factors);
}
void StepRange(float* value, const float* direction, Bfloat16* rounded, int64_t n, float rate) {
  HWY_DYNAMIC_DISPATCH(StepRange)(value, direction, rounded, n, rate);
}
void AverageRange(const float* value, float* average, int64_t n, float rate) {
  HWY_DYNAMIC_DISPATCH(AverageRange)(value, average, n, rate);
}

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
