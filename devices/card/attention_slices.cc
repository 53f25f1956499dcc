#include "devices/card/attention_slices.h"

#include <algorithm>

#include "base/errors/check.h"
#include "base/numbers/saturate.h"

namespace stagecoach {
namespace {

// The largest divisor of `count` that is at most `limit`; 0 if limit is 0.
int64_t LargestDivisor(int64_t count, int64_t limit) {
  for (int64_t d = std::min(limit, count); d > 0; --d) {
    if (count % d == 0) return d;
  }
  return 0;
}

// Of one head.
int64_t ScoreBytes(int64_t context) {
  return SaturatingMultiply(2, SaturatingMultiply(context, context));
}

}  // namespace

AttentionSlice LargestAttentionSlice(int64_t sequences, int64_t context, int64_t heads,
                                     int64_t bytes) {
  CHECK_GT(heads, 0) << "attention";
  const int64_t head_bytes = ScoreBytes(context);
  const int64_t most = head_bytes > 0 ? bytes / head_bytes : SaturatingMultiply(sequences, heads);
  const int64_t whole = LargestDivisor(sequences, most / heads);
  if (whole > 0) return {whole, heads};
  return {1, std::max<int64_t>(LargestDivisor(heads, most), 1)};
}

int64_t ScoreBytesOf(const AttentionSlice& slice, int64_t context) {
  return SaturatingMultiply(ScoreBytes(context), slice.sequences * slice.heads);
}

}  // namespace stagecoach
