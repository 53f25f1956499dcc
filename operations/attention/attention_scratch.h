// AttentionScratch: memory of one thread of a processor for a unit of attention with so many
// columns: keys, values, their transposes, and the scores of a block of queries. Kernels lay it out
// so (stage/backends/cpu/attention_units.cc), and forecasts count it.
// Units:     elements of float32. Threads: pure functions.
#ifndef STAGECOACH_OPERATIONS_ATTENTION_ATTENTION_SCRATCH_H_
#define STAGECOACH_OPERATIONS_ATTENTION_ATTENTION_SCRATCH_H_

#include <cstdint>

namespace stagecoach {

struct AttentionScratch {
  // Pieces are whole vectors of the widest instruction set, whichever is in use.
  static constexpr int64_t kPad = 16;
  // Taller blocks load and store the sums of dK and dV less often; two of them fit the second
  // cache.
  static constexpr int64_t kQueryRows = 96;
  static constexpr int64_t kWordsSlack = 64;  // room for the random words of a row, and one vector

  static constexpr int64_t Padded(int64_t n) { return (n + kPad - 1) / kPad * kPad; }
  // One vector more than a row needs, for the zeros beyond the diagonal. It also makes the distance
  // odd in cache lines: if the columns are a power of two, a column then spreads over all cache
  // sets.
  static constexpr int64_t ScoreStride(int64_t columns) { return Padded(columns) + kPad; }

  static constexpr int64_t Forward(int64_t columns, int64_t head_width) {
    const int64_t width = Padded(head_width), stride = ScoreStride(columns);
    return 2 * columns * width + head_width * stride + kQueryRows * (2 * width + stride) + stride +
           kWordsSlack;
  }
  static constexpr int64_t Backward(int64_t columns, int64_t head_width) {
    const int64_t width = Padded(head_width), stride = ScoreStride(columns);
    return 4 * columns * width + 2 * head_width * stride + kQueryRows * (3 * width + 2 * stride) +
           stride + kWordsSlack;
  }
  // Of a row's attention to a history of a pool (cached_attention.h): places of its keys, a query,
  // and scores.
  static constexpr int64_t Cached(int64_t context, int64_t head_width) {
    return Padded(2 * context) + Padded(head_width) + ScoreStride(context);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_ATTENTION_ATTENTION_SCRATCH_H_
