// Products and sums are kept apart (no fused multiply-add): these are the reference's bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/updates/adamw_update.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "operations/updates/adamw_update.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/kernels/updates/update_blocks.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

void AdamWRange(float* value, const float* gradient, float* m, float* v, Bfloat16* rounded,
                int64_t n, const AdamWNumbers& factors) {
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

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(AdamWRange);

namespace {

absl::StatusOr<Kernel> Update(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto attributes = AttributesOf<AdamWUpdateAttributes>(call);
  return Kernel([&backend, attributes](const KernelContext& context, const KernelArguments& a) {
    const AdamWNumbers factors = NumbersOf(attributes, *context.update);
    const UpdateArrays of(a);
    const auto body = [&](int64_t first, int64_t count, int) {
      HWY_DYNAMIC_DISPATCH(AdamWRange)
      (of.value + first, of.gradient + first, of.first + first, of.second + first,
       At(of.rounded, first), count, factors);
    };
    backend.ForEachBlock(of.elements, kElementBlock, body);
  });
}

}  // namespace

KernelList AdamWUpdateKernels() { return {{"adamw_update", Update}}; }

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
