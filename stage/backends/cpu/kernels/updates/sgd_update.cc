// Products and sums are kept apart (no fused multiply-add): these are the reference's bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/updates/sgd_update.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "operations/updates/sgd_update.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/kernels/updates/update_blocks.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

void SgdRange(float* value, const float* gradient, float* velocity, Bfloat16* rounded, int64_t n,
              const SgdNumbers& factors) {
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

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(SgdRange);

namespace {

absl::StatusOr<Kernel> Update(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto attributes = AttributesOf<SgdUpdateAttributes>(call);
  return Kernel([&backend, attributes](const KernelContext& context, const KernelArguments& a) {
    const SgdNumbers factors = NumbersOf(attributes, *context.update);
    const UpdateArrays of(a);
    const auto body = [&](int64_t first, int64_t count, int) {
      HWY_DYNAMIC_DISPATCH(SgdRange)
      (of.value + first, of.gradient + first, At(of.first, first), At(of.rounded, first), count,
       factors);
    };
    backend.ForEachBlock(of.elements, kElementBlock, body);
  });
}

}  // namespace

KernelList SgdUpdateKernels() { return {{"sgd_update", Update}}; }

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
