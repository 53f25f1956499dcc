// Products and sums are kept apart (no fused multiply-add): these are the reference's bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/updates/average_update.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/kernels/updates/update_blocks.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

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

HWY_EXPORT(AverageRange);

namespace {

absl::StatusOr<Kernel> Update(CpuBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext& context, const KernelArguments& a) {
    const auto rate = static_cast<float>(context.update->learning_rate);
    const float* value = a.inputs[0].data<float>();
    float* average = a.adds[0].data<float>();
    a.adds[0].buffer()->Rewritten();
    const auto body = [&](int64_t first, int64_t count, int) {
      HWY_DYNAMIC_DISPATCH(AverageRange)(value + first, average + first, count, rate);
    };
    backend.ForEachBlock(a.inputs[0].elements(), kElementBlock, body);
  });
}

}  // namespace

KernelList AverageUpdateKernels() { return {{"average_update", Update}}; }

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
