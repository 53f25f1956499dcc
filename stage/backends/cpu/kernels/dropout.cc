// One random word an element (operations/pointwise/dropout.h).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/dropout.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "operations/pointwise/dropout.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/philox-inl.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

// Elements [first, first + n) of the stream; x and y point at element `first`.
void DropoutRange(const float* x, float* y, int64_t first, int64_t n, double rate,
                  const RandomStream& stream) {
  constexpr int64_t kChunk = 1024;
  HWY_ALIGN uint32_t buffer[kChunk + kRandomSlack];
  const uint32_t threshold = DropoutThreshold(rate);
  const auto scale = hn::Set(F32(), static_cast<float>(1.0 / (1.0 - rate)));
  for (int64_t start = 0; start < n; start += kChunk) {
    const int64_t count = HWY_MIN(kChunk, n - start);
    const uint32_t* words =
        RandomWords(stream, static_cast<uint64_t>(first + start), count, buffer);
    ForEachVector(count, [=](int64_t i, auto at) HWY_ATTR {
      const auto kept = KeepMask(words + i, threshold);
      at.Store(hn::IfThenElseZero(kept, hn::Mul(at.Load(x + start + i), scale)), y + start + i);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(DropoutRange);

namespace {

absl::StatusOr<Kernel> Dropout(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto attributes = AttributesOf<DropoutAttributes>(call);
  return Kernel([&backend, attributes](const KernelContext& context, const KernelArguments& a) {
    const RandomStream stream = context.Stream(attributes.draw);
    const FloatInput x(a.inputs[0]);
    const FloatOutput y(a.outputs[0]);
    backend.ForEachPiece(a.inputs[0], kElementBlock, 1, 1,
                         [&](int64_t first, int64_t count, const Room& room) {
                           HWY_DYNAMIC_DISPATCH(DropoutRange)
                           (x.Read(first, count, room[0]), y.At(first, room[0]), first, count,
                            attributes.rate, stream);
                           y.Finish(first, count, room[0]);
                         });
  });
}

}  // namespace

KernelList DropoutKernels() { return {{"dropout", Dropout}}; }

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
