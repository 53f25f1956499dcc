#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/rotary.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include <cstring>

#include "operations/attention/packed_heads.h"
#include "operations/attention/rotary.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/vector-inl.h"
#include "stage/backends/shared_rotary_tables.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

struct Pair {
  F32Vec u, v;
};
HWY_INLINE Pair Turned(F32Vec u, F32Vec v, F32Vec cosine, F32Vec sine) {
  return {hn::MulSub(u, cosine, hn::Mul(v, sine)), hn::MulAdd(u, sine, hn::Mul(v, cosine))};
}

// `heads` heads of 2 * pairs elements; y may be x.
void TurnHalves(const float* x, const float* cosines, const float* sines, float* y, int64_t heads,
                int64_t pairs) {
  for (int64_t h = 0; h < heads; ++h, x += 2 * pairs, y += 2 * pairs) {
    ForEachVector(pairs, [=](int64_t i, auto at) HWY_ATTR {
      const Pair pair =
          Turned(at.Load(x + i), at.Load(x + pairs + i), at.Load(cosines + i), at.Load(sines + i));
      at.Store(pair.u, y + i);
      at.Store(pair.v, y + pairs + i);
    });
  }
}

void TurnNeighbours(const float* x, const float* cosines, const float* sines, float* y,
                    int64_t heads, int64_t pairs) {
  const F32 d;
  const int64_t lanes = FloatLanes();
  HWY_ALIGN float mixed[2 * hn::MaxLanes(F32())] = {};
  for (int64_t h = 0; h < heads; ++h, x += 2 * pairs, y += 2 * pairs) {
    ForEachVector(pairs, [&](int64_t i, auto at) HWY_ATTR {
      const auto bytes = static_cast<size_t>(2 * HWY_MIN(lanes, pairs - i)) * sizeof(float);
      std::memcpy(mixed, x + 2 * i, bytes);
      F32Vec u, v;
      hn::LoadInterleaved2(d, mixed, u, v);
      const Pair pair = Turned(u, v, at.Load(cosines + i), at.Load(sines + i));
      hn::StoreInterleaved2(pair.u, pair.v, d, mixed);
      std::memcpy(y + 2 * i, mixed, bytes);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(TurnHalves);
HWY_EXPORT(TurnNeighbours);

namespace {

void Turn(bool interleaved, const float* x, const float* cosines, const float* sines, float* y,
          int64_t heads, int64_t pairs) {
  if (interleaved) {
    HWY_DYNAMIC_DISPATCH(TurnNeighbours)(x, cosines, sines, y, heads, pairs);
  } else {
    HWY_DYNAMIC_DISPATCH(TurnHalves)(x, cosines, sines, y, heads, pairs);
  }
}

absl::StatusOr<Kernel> Rotary(CpuBackend& backend, const Call& call, const CallTypes& types,
                              DType) {
  const auto attributes = AttributesOf<RotaryAttributes>(call);
  const PackedHeads packed = PackedHeadsOf(types.inputs[0], attributes.heads, attributes.key_heads);
  const int64_t positions = TablePositions(attributes.positions, packed.context);
  return Kernel([&backend, packed, positions, interleaved = attributes.interleaved,
                 tables = SharedRotaryTables(attributes, positions, packed.head_width)](
                    const KernelContext&, const KernelArguments& a) {
    const RowPositions rows_at{positions,
                               a.inputs.size() > 1 ? a.inputs[1].data<int32_t>() : nullptr};
    const int64_t pairs = packed.head_width / 2, heads = packed.heads + packed.key_heads;
    const int64_t turned = heads * packed.head_width;
    const int64_t width = turned + packed.key_heads * packed.head_width;
    const FloatInput x(a.inputs[0]);
    const FloatOutput y(a.outputs[0]);
    backend.ForEachPiece(a.outputs[0], kSmallRowBlock, width, 1,
                         [&](int64_t first, int64_t count, const Room& room) {
                           const float* from = x.Read(first * width, count * width, room[0]);
                           float* const to = y.At(first * width, room[0]);
                           for (int64_t r = 0; r < count; ++r) {
                             const int64_t angle = rows_at.At(first + r) * pairs, start = r * width;
                             Turn(interleaved, from + start, tables->cosines.data() + angle,
                                  tables->sines.data() + angle, to + start, heads, pairs);
                             if (to == from) continue;
                             std::memcpy(to + start + turned, from + start + turned,
                                         static_cast<size_t>(width - turned) * sizeof(float));
                           }
                           y.Finish(first * width, count * width, room[0]);
                         });
  });
}

}  // namespace

KernelList RotaryKernels() { return {{"rotary", Rotary}}; }

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
