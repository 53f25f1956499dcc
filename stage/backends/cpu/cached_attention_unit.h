// The pieces of attention to a pool of rows on the cpu: one row with the heads that read one key
// head (operations/attention/cached_attention.h).
// Threads:   pure functions; scratch is the caller's.
// Units and shapes: elements.
// Determinism: a row's sums depend on its own history alone.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_CACHED_ATTENTION_UNIT_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_CACHED_ATTENTION_UNIT_H_

#include <cstdint>

#include "base/numbers/bfloat16.h"
#include "operations/attention/cached_attention.h"

namespace stagecoach::cpu {

// T is float or Bfloat16.
template <typename T>
struct CachedAttentionUnit {
  const CachedHeads& heads;
  const T* queries;        // of the first head; the others, and their outputs, lie behind it
  const T *keys, *values;  // the pool's, at the key head
  const int32_t* history;  // of the row
  int64_t seen;            // ids of it
};
// `scratch`: as many floats as CachedAttentionFloats says.
int64_t CachedAttentionFloats(const CachedHeads& heads);
void RunCachedAttentionUnit(const CachedAttentionUnit<float>& unit, float* out, float* scratch);
void RunCachedAttentionUnit(const CachedAttentionUnit<Bfloat16>& unit, Bfloat16* out,
                            float* scratch);

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_CACHED_ATTENTION_UNIT_H_
