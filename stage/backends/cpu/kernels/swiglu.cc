#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/swiglu.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/silu-inl.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

// y may be either.
void SwigluRange(const float* gate, const float* up, float* y, int64_t n) {
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto x = at.Load(gate + i);
    at.Store(hn::Mul(hn::Mul(x, GateOf(x)), at.Load(up + i)), y + i);
  });
}

// d_gate may be dy.
void SwigluGradientRange(const float* dy, const float* gate, const float* up, float* d_gate,
                         float* d_up, int64_t n) {
  ForEachVector(n, [=](int64_t i, auto at) HWY_ATTR {
    const auto gradient = at.Load(dy + i), x = at.Load(gate + i), s = GateOf(x);
    at.Store(hn::Mul(hn::Mul(gradient, at.Load(up + i)), SiluSlope(x, s)), d_gate + i);
    at.Store(hn::Mul(gradient, hn::Mul(x, s)), d_up + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(SwigluRange);
HWY_EXPORT(SwigluGradientRange);

namespace {

absl::StatusOr<Kernel> Swiglu(CpuBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    const FloatInput gate(a.inputs[0]), up(a.inputs[1]);
    const FloatOutput y(a.outputs[0]);
    backend.ForEachPiece(a.outputs[0], kElementBlock, 1, 2,
                         [&](int64_t first, int64_t count, const Room& room) {
                           HWY_DYNAMIC_DISPATCH(SwigluRange)
                           (gate.Read(first, count, room[0]), up.Read(first, count, room[1]),
                            y.At(first, room[0]), count);
                           y.Finish(first, count, room[0]);
                         });
  });
}

absl::StatusOr<Kernel> Gradient(CpuBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    const FloatInput dy(a.inputs[0]), gate(a.inputs[1]), up(a.inputs[2]);
    const FloatOutput d_gate(a.outputs[0]), d_up(a.outputs[1]);
    backend.ForEachPiece(a.outputs[0], kElementBlock, 1, 3,
                         [&](int64_t first, int64_t count, const Room& room) {
                           HWY_DYNAMIC_DISPATCH(SwigluGradientRange)
                           (dy.Read(first, count, room[0]), gate.Read(first, count, room[1]),
                            up.Read(first, count, room[2]), d_gate.At(first, room[0]),
                            d_up.At(first, room[1]), count);
                           d_gate.Finish(first, count, room[0]);
                           d_up.Finish(first, count, room[1]);
                         });
  });
}

}  // namespace

KernelList SwigluKernels() { return {{"swiglu", Swiglu}, {"swiglu_gradient", Gradient}}; }

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
