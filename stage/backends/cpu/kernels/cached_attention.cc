// Attention to a pool of rows (operations/attention/cached_attention.h): one unit per row and key
// head.
#include "operations/attention/cached_attention.h"

#include <algorithm>
#include <cstring>

#include "stage/backends/cpu/cached_attention_unit.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"

namespace stagecoach::cpu {
namespace {

constexpr int64_t kBlockProducts = 1 << 16;  // multiply-adds of a task, about

// T: the type of the activations.
template <typename T>
void WriteCache(CpuBackend& backend, const CachedHeads& heads, const KernelArguments& a) {
  const T* const qkv = a.inputs[0].data<T>();
  const int32_t* const places = a.inputs[1].data<int32_t>();
  T *const keys = a.adds[0].data<T>(), *const values = a.adds[1].data<T>();
  const int64_t width = heads.key_width();
  const auto bytes = static_cast<size_t>(width) * sizeof(T);
  const int64_t rows = a.inputs[1].elements();
  backend.ForEachBlock(rows, kSmallRowBlock, [&](int64_t first, int64_t count, int) {
    for (int64_t row = first; row < first + count; ++row) {
      if (!heads.InPool(places[row])) continue;
      const T* const key = qkv + row * heads.packed_width() + heads.width();
      std::memcpy(keys + places[row] * width, key, bytes);
      std::memcpy(values + places[row] * width, key + width, bytes);
    }
  });
}

template <typename T>
void Attend(CpuBackend& backend, const CachedHeads& heads, const KernelArguments& a) {
  const int rooms =
      backend.ReserveRooms(CachedAttentionFloats(heads) * static_cast<int64_t>(sizeof(float)));
  if (rooms == 0) return;
  const T* const qkv = a.inputs[0].data<T>();
  const int32_t* const positions = a.inputs[2].data<int32_t>();
  const int32_t* const history = a.inputs[3].data<int32_t>();
  const T *const keys = a.adds[0].data<T>(), *const values = a.adds[1].data<T>();
  T* const out = a.outputs[0].data<T>();
  const int64_t width = heads.group() * heads.head_width;  // of a unit
  const int64_t products = 2 * heads.context * width;
  const int64_t block =
      std::clamp<int64_t>(kBlockProducts / std::max<int64_t>(products, 1), 1, kSmallRowBlock);
  const int64_t units = a.inputs[1].elements() * heads.key_heads;
  backend.ForEachBlock(rooms, units, block, [&](int64_t first, int64_t count, int worker) {
    for (int64_t index = first; index < first + count; ++index) {
      const int64_t row = index / heads.key_heads, key_head = index % heads.key_heads;
      const int64_t seen = heads.Seen(positions[row]);
      if (seen == 0) {
        std::fill_n(out + index * width, width, T(0.0f));
        continue;
      }
      const int64_t column = key_head * heads.head_width;
      RunCachedAttentionUnit(
          CachedAttentionUnit<T>{.heads = heads,
                                 .queries = qkv + row * heads.packed_width() + key_head * width,
                                 .keys = keys + column,
                                 .values = values + column,
                                 .history = history + row * heads.context,
                                 .seen = seen},
          out + index * width, backend.WorkerScratch(worker));
    }
  });
}

template <typename T>
void Run(CpuBackend& backend, const CachedHeads& heads, const KernelArguments& a) {
  WriteCache<T>(backend, heads, a);
  Attend<T>(backend, heads, a);
}

absl::StatusOr<Kernel> Prepare(CpuBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const CachedHeads heads = CachedHeadsOf(AttributesOf<CachedAttentionAttributes>(call), types);
  return Kernel([&backend, heads](const KernelContext&, const KernelArguments& a) {
    if (IsBfloat16(a.inputs[0])) return Run<Bfloat16>(backend, heads, a);
    Run<float>(backend, heads, a);
  });
}

}  // namespace

KernelList CachedAttentionKernels() { return {{"cached_attention", Prepare}}; }

}  // namespace stagecoach::cpu
