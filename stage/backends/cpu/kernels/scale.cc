// operations/pointwise/scale.h
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/scale.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "operations/pointwise/scale.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

void ScaleRange(const float* x, float factor, float* y, int64_t n) {
  const auto times = hn::Set(F32(), factor);
  ForEachVector(
      n, [=](int64_t i, auto at) HWY_ATTR { at.Store(hn::Mul(at.Load(x + i), times), y + i); });
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(ScaleRange);

namespace {

absl::StatusOr<Kernel> Scale(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto factor = static_cast<float>(AttributesOf<ScaleAttributes>(call).factor);
  return Kernel([&backend, factor](const KernelContext&, const KernelArguments& a) {
    const FloatInput x(a.inputs[0]);
    const FloatOutput y(a.outputs[0]);
    backend.ForEachPiece(a.outputs[0], kElementBlock, 1, 1,
                         [&](int64_t first, int64_t count, const Room& room) {
                           HWY_DYNAMIC_DISPATCH(ScaleRange)
                           (x.Read(first, count, room[0]), factor, y.At(first, room[0]), count);
                           y.Finish(first, count, room[0]);
                         });
  });
}

}  // namespace

KernelList ScaleKernels() { return {{"scale", Scale}}; }

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
