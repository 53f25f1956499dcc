// AttentionSlice: the part of attention that one execution on a card computes. It is some
// neighbouring sequences with all heads, or one sequence with some neighbouring heads.
// Units:     bytes. Threads: pure functions.
#ifndef STAGECOACH_DEVICES_CARD_ATTENTION_SLICES_H_
#define STAGECOACH_DEVICES_CARD_ATTENTION_SLICES_H_

#include <cstdint>

namespace stagecoach {

struct AttentionSlice {
  int64_t sequences = 0, heads = 0;
  friend bool operator==(const AttentionSlice&, const AttentionSlice&) = default;
};
// The largest slice whose matrices fit into `bytes`. Equal slices make up the whole. It has at
// least one head of one sequence.
AttentionSlice LargestAttentionSlice(int64_t sequences, int64_t context, int64_t heads,
                                     int64_t bytes);
// Bytes of its score matrices.
int64_t ScoreBytesOf(const AttentionSlice& slice, int64_t context);

}  // namespace stagecoach

#endif  // STAGECOACH_DEVICES_CARD_ATTENTION_SLICES_H_
