// A head's scores lie in the first cache. Several keys at a time hide the latency of their sums.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/cached_attention_unit.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include <algorithm>
#include <cmath>

#include "operations/attention/attention_scratch.h"
#include "stage/backends/cpu/cached_attention_unit.h"
#include "stage/backends/cpu/vector/softmax-inl.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

constexpr int kKeysAtOnce = 4;
constexpr int kSumsAtOnce = 4;

// scores[k] = query key[k], where keys begin at `starts`. A score does not depend on kKeys.
template <int kKeys, typename T>
HWY_INLINE void Scores(const float* query, const T* keys, const int64_t* starts, int64_t width,
                       float* scores) {
  F32Vec sums[kKeys];
  for (int k = 0; k < kKeys; ++k) sums[k] = hn::Zero(F32());
  ForEachVector(width, [&](int64_t i, auto at) HWY_ATTR {
    const auto q = at.Load(query + i);
    for (int k = 0; k < kKeys; ++k) sums[k] = hn::MulAdd(q, at.Load(keys + starts[k] + i), sums[k]);
  });
  for (int k = 0; k < kKeys; ++k) scores[k] = Sum(sums[k]);
}

// kSums vectors of out = scale * sum over t of p[t] values[t], in ascending order of t.
template <int kSums, typename Access, typename T>
HWY_INLINE void Weigh(Access at, const float* p, const T* values, const int64_t* starts,
                      int64_t seen, float scale, T* out) {
  const int64_t lanes = FloatLanes();
  F32Vec sums[kSums];
  for (int v = 0; v < kSums; ++v) sums[v] = hn::Zero(F32());
  for (int64_t t = 0; t < seen; ++t) {
    const auto weight = hn::Set(F32(), p[t]);
    const T* const row = values + starts[t];
    for (int v = 0; v < kSums; ++v) sums[v] = hn::MulAdd(weight, at.Load(row + v * lanes), sums[v]);
  }
  const auto factor = hn::Set(F32(), scale);
  for (int v = 0; v < kSums; ++v) at.Store(hn::Mul(sums[v], factor), out + v * lanes);
}

template <typename T>
HWY_INLINE void RunUnit(const CachedAttentionUnit<T>& unit, T* out, float* scratch) {
  const int64_t width = unit.heads.head_width, seen = unit.seen;
  auto* const starts = reinterpret_cast<int64_t*>(scratch);
  float* const query = scratch + AttentionScratch::Padded(2 * unit.heads.context);
  float* const scores = query + AttentionScratch::Padded(width);
  for (int64_t t = 0; t < seen; ++t) {
    starts[t] = unit.heads.PoolRow(unit.history[t]) * unit.heads.key_width();
  }
  const auto scale = hn::Set(F32(), 1.0f / std::sqrt(static_cast<float>(width)));
  const T* queries = unit.queries;
  for (int64_t head = 0; head < unit.heads.group(); ++head, queries += width, out += width) {
    ForEachVector(width, [=](int64_t i, auto at) HWY_ATTR {
      at.Store(hn::Mul(at.Load(queries + i), scale), query + i);
    });
    int64_t t = 0;
    for (; t + kKeysAtOnce <= seen; t += kKeysAtOnce) {
      Scores<kKeysAtOnce>(query, unit.keys, starts + t, width, scores + t);
    }
    for (; t < seen; ++t) Scores<1>(query, unit.keys, starts + t, width, scores + t);
    const float inverse = 1.0f / SoftmaxRow(seen, scores).sum;
    const int64_t wide = kSumsAtOnce * FloatLanes();
    int64_t i = 0;
    for (; i + wide <= width; i += wide) {
      Weigh<kSumsAtOnce>(FullAccess(), scores, unit.values + i, starts, seen, inverse, out + i);
    }
    ForEachVector(width - i, [&](int64_t rest, auto at) HWY_ATTR {
      Weigh<1>(at, scores, unit.values + i + rest, starts, seen, inverse, out + i + rest);
    });
  }
}

void RunFloat(const CachedAttentionUnit<float>& unit, float* out, float* scratch) {
  RunUnit(unit, out, scratch);
}
void RunBfloat16(const CachedAttentionUnit<Bfloat16>& unit, Bfloat16* out, float* scratch) {
  RunUnit(unit, out, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(RunFloat);
HWY_EXPORT(RunBfloat16);

int64_t CachedAttentionFloats(const CachedHeads& heads) {
  return AttentionScratch::Cached(heads.context, heads.head_width);
}

void RunCachedAttentionUnit(const CachedAttentionUnit<float>& unit, float* out, float* scratch) {
  HWY_DYNAMIC_DISPATCH(RunFloat)(unit, out, scratch);
}
void RunCachedAttentionUnit(const CachedAttentionUnit<Bfloat16>& unit, Bfloat16* out,
                            float* scratch) {
  HWY_DYNAMIC_DISPATCH(RunBfloat16)(unit, out, scratch);
}

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
