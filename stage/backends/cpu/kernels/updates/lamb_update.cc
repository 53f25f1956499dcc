// Products and sums are kept apart (no fused multiply-add): these are the reference's bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/updates/lamb_update.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include <algorithm>

#include "operations/updates/lamb_update.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/kernels/updates/update_blocks.h"
#include "stage/backends/cpu/vector/kernels.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

// Writes the direction over the gradient.
void LambDirectionRange(const float* value, float* gradient, float* m, float* v, int64_t n,
                        const AdamWNumbers& factors) {
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

void LambStepRange(float* value, const float* direction, Bfloat16* rounded, int64_t n, float rate) {
  const F32 d;
  const auto factor = hn::Set(d, rate);
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto next = hn::Sub(at.Load(value + i), hn::Mul(factor, at.Load(direction + i)));
    at.Store(next, value + i);
    if (rounded != nullptr) at.Store(next, rounded + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(LambDirectionRange);
HWY_EXPORT(LambStepRange);

namespace {

// A block's share of the norms is taken while the block is in the cache.
absl::StatusOr<Kernel> Update(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto attributes = AttributesOf<LambUpdateAttributes>(call);
  return Kernel([&backend, attributes](const KernelContext& context, const KernelArguments& a) {
    const AdamWNumbers factors = NumbersOf(attributes, *context.update);
    const UpdateArrays of(a);
    const int64_t blocks = ElementBlocks(of.elements);
    auto* const partial = reinterpret_cast<double*>(backend.ReserveShared(
        std::max<int64_t>(blocks, 1) * 2 * static_cast<int64_t>(sizeof(double))));
    if (partial == nullptr) return;
    backend.ForEachBlock(of.elements, kElementBlock, [&](int64_t first, int64_t count, int) {
      float *const value = of.value + first, *const gradient = of.gradient + first;
      HWY_DYNAMIC_DISPATCH(LambDirectionRange)
      (value, gradient, of.first + first, of.second + first, count, factors);
      partial[first / kElementBlock] = SumOfSquares(value, count);
      partial[blocks + first / kElementBlock] = SumOfSquares(gradient, count);
    });
    const float rate = LambRate(attributes.adapt, factors.learning_rate,
                                SumInOrder(partial, blocks), SumInOrder(partial + blocks, blocks));
    backend.ForEachBlock(of.elements, kElementBlock, [&](int64_t first, int64_t count, int) {
      HWY_DYNAMIC_DISPATCH(LambStepRange)
      (of.value + first, of.gradient + first, At(of.rounded, first), count, rate);
    });
  });
}

}  // namespace

KernelList LambUpdateKernels() { return {{"lamb_update", Update}}; }

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
