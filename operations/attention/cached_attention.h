// cached_attention: attention of new rows to rows that were computed before, for decoding token by
// token. Keys and values of all rows lie in a pool, and each row names the pool's rows that it
// sees. A row is one token of one hypothesis. Inputs:
//   qkv        [rows, (heads + 2 * key_heads) * head_width] (operations/attention/packed_heads.h)
//   places     ids[n, rows], the pool's row for a row's own key and value; outside of the pool:
//              they are kept nowhere. The places of a call that are inside differ.
//   positions  ids[n, rows], the row's place in its history; outside of [0, context): out is zeros
//   history    ids[n, rows, context], rows of the pool by position, the row itself last. An id
//              outside of the pool counts as 0.
// The call changes `adds`, once for all samples:
//   keys, values  [pool, key_heads * head_width]
// First every row's key and value are written. Then row r attends to the pool's rows history[r, t]
// for t = 0 ... positions[r], as rows do in attention (operations/attention/attention.h). Output:
// out [rows, heads * head_width]. There is no gradient.
#ifndef STAGECOACH_OPERATIONS_ATTENTION_CACHED_ATTENTION_H_
#define STAGECOACH_OPERATIONS_ATTENTION_CACHED_ATTENTION_H_

#include <cstdint>

#include "operations/operation.h"

namespace stagecoach {

struct CachedAttentionAttributes {
  int64_t heads = 1;
  int64_t key_heads = 0;  // 0: as many as heads
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("heads", heads, 1);
    visit.Count("key_heads", key_heads, 0);
  }
};

struct CachedHeads {
  int64_t heads = 1, key_heads = 1, head_width = 0;
  int64_t context = 0;  // ids of a history
  int64_t pool = 0;     // rows

  int64_t group() const { return heads / key_heads; }
  int64_t width() const { return heads * head_width; }
  int64_t key_width() const { return key_heads * head_width; }
  int64_t packed_width() const { return width() + 2 * key_width(); }

  bool InPool(int32_t id) const { return id >= 0 && id < pool; }
  int64_t PoolRow(int32_t id) const { return InPool(id) ? id : 0; }
  // Ids of its history that a row attends to; 0: its out is zeros.
  int64_t Seen(int32_t position) const {
    return position >= 0 && position < context ? int64_t{position} + 1 : 0;
  }
};
// The heads of checked types.
CachedHeads CachedHeadsOf(const CachedAttentionAttributes& attributes, const CallTypes& types);

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_ATTENTION_CACHED_ATTENTION_H_
