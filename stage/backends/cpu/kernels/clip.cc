// operations/pointwise/clip.h
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/clip.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "operations/pointwise/clip.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

void ClipRange(const float* x, float limit, float* y, int64_t n) {
  const auto high = hn::Set(F32(), limit), low = hn::Set(F32(), -limit);
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto values = at.Load(x + i);
    // A NaN stays one, as Min and Max would not let it on every instruction set.
    const auto below = hn::IfThenElse(hn::Gt(values, high), high, values);
    at.Store(hn::IfThenElse(hn::Lt(below, low), low, below), y + i);
  });
}
void ClipGradientRange(const float* dy, const float* x, float limit, float* dx, int64_t n) {
  const auto high = hn::Set(F32(), limit);
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto kept = hn::Le(hn::Abs(at.Load(x + i)), high);
    at.Store(hn::IfThenElseZero(kept, at.Load(dy + i)), dx + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(ClipRange);
HWY_EXPORT(ClipGradientRange);

namespace {

float LimitOf(const Call& call) {
  return static_cast<float>(AttributesOf<ClipAttributes>(call).limit);
}

absl::StatusOr<Kernel> Clip(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  return Kernel([&backend, limit = LimitOf(call)](const KernelContext&, const KernelArguments& a) {
    const FloatInput x(a.inputs[0]);
    const FloatOutput y(a.outputs[0]);
    backend.ForEachPiece(a.outputs[0], kElementBlock, 1, 1,
                         [&](int64_t first, int64_t count, const Room& room) {
                           HWY_DYNAMIC_DISPATCH(ClipRange)
                           (x.Read(first, count, room[0]), limit, y.At(first, room[0]), count);
                           y.Finish(first, count, room[0]);
                         });
  });
}

absl::StatusOr<Kernel> Gradient(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  return Kernel([&backend, limit = LimitOf(call)](const KernelContext&, const KernelArguments& a) {
    const FloatInput dy(a.inputs[0]), x(a.inputs[1]);
    const FloatOutput dx(a.outputs[0]);
    backend.ForEachPiece(a.outputs[0], kElementBlock, 1, 2,
                         [&](int64_t first, int64_t count, const Room& room) {
                           HWY_DYNAMIC_DISPATCH(ClipGradientRange)
                           (dy.Read(first, count, room[0]), x.Read(first, count, room[1]), limit,
                            dx.At(first, room[0]), count);
                           dx.Finish(first, count, room[0]);
                         });
  });
}

}  // namespace

KernelList ClipKernels() { return {{"clip", Clip}, {"clip_gradient", Gradient}}; }

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
