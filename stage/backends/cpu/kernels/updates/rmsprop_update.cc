// Products and sums are kept apart (no fused multiply-add): these are the reference's bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/updates/rmsprop_update.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "operations/updates/rmsprop_update.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/kernels/updates/update_blocks.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

void RmsPropRange(float* value, const float* gradient, float* square, float* velocity,
                  Bfloat16* rounded, int64_t n, const RmsPropNumbers& factors) {
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

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(RmsPropRange);

namespace {

absl::StatusOr<Kernel> Update(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto attributes = AttributesOf<RmsPropUpdateAttributes>(call);
  return Kernel([&backend, attributes](const KernelContext& context, const KernelArguments& a) {
    const RmsPropNumbers factors = NumbersOf(attributes, *context.update);
    const UpdateArrays of(a);
    const auto body = [&](int64_t first, int64_t count, int) {
      HWY_DYNAMIC_DISPATCH(RmsPropRange)
      (of.value + first, of.gradient + first, of.first + first, At(of.second, first),
       At(of.rounded, first), count, factors);
    };
    backend.ForEachBlock(of.elements, kElementBlock, body);
  });
}

}  // namespace

KernelList RmsPropUpdateKernels() { return {{"rmsprop_update", Update}}; }

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
